import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { ExecutionItem } from "../api/types.ts";
import { Ago } from "../parts/now.tsx";
import { errorGroups } from "./groups.ts";

/** How many of a group are named. */
const NAMED_MAX = 5;

/** What goes wrong, and how often, over the executions that are loaded. */
export function ErrorGroups({ rows }: { rows: readonly ExecutionItem[] }): ReactNode {
  const groups = errorGroups(rows);
  if (groups.length === 0) return <p className="panel">None of these {rows.length} executions has failed.</p>;
  return (
    <div className="stack">
      <p className="quiet">
        {groups.length} kinds of error in the {rows.length} newest executions of this filter
      </p>
      {groups.map((group) => (
        <section key={group.code + group.shape} className="panel tone-bad">
          <h2>
            {group.rows.length} × <code>{group.code}</code>
          </h2>
          <p className="wrap">{group.rows[0]?.error?.message}</p>
          <p className="quiet">{group.paths.join(", ")}</p>
          <ul>
            {group.rows.slice(0, NAMED_MAX).map((row) => (
              <li key={row.execution_id}>
                <Link to="/executions/$executionId" params={{ executionId: row.execution_id }} className="mono">
                  {row.execution_id}
                </Link>{" "}
                <Ago at={row.started_at} />
              </li>
            ))}
            {group.rows.length > NAMED_MAX && <li className="quiet">and {group.rows.length - NAMED_MAX} more</li>}
          </ul>
        </section>
      ))}
    </div>
  );
}
