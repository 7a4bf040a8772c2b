import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { executionList } from "../../api/queries.ts";
import type { ExecutionItem } from "../../api/types.ts";
import { Ago, Lasting } from "../../parts/now.tsx";
import { ProblemPanel } from "../../parts/problem.tsx";
import { Status } from "../../parts/status.tsx";

/** Runs that are shown here; the list of executions has the rest, and filters. */
const SHOWN = 25;

/** The newest executions of a path, each with a way to run it again. */
export function EntryExecutions({ path }: { path: string }): ReactNode {
  const pages = useInfiniteQuery(executionList({ path }));
  const rows = pages.data?.pages[0]?.executions ?? [];
  if (pages.isError) return <ProblemPanel error={pages.error} again={() => void pages.refetch()} />;
  if (pages.isPending) return <p className="quiet">Loading …</p>;
  if (rows.length === 0) {
    return (
      <section className="panel">
        <h2>No runs yet</h2>
        <p>
          <Link from="/entry/$" to="." search={(before) => ({ ...before, tab: "run" })}>
            Run it
          </Link>
          , or <code>flow run {path} --runtime server</code>
        </p>
      </section>
    );
  }
  return (
    <div className="panel scroll">
      <table>
        <thead>
          <tr>
            <th>Status</th>
            <th>Execution</th>
            <th>Started</th>
            <th>Took</th>
            <th>Again</th>
            <th className="wide">Error</th>
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, SHOWN).map((row) => (
            <ExecutionRow key={row.execution_id} row={row} />
          ))}
        </tbody>
      </table>
      <p>
        <Link to="/executions" search={{ path }}>
          All executions of {path}
        </Link>
      </p>
    </div>
  );
}

function ExecutionRow({ row }: { row: ExecutionItem }): ReactNode {
  return (
    <tr>
      <td>
        <Status of={row.status} />
      </td>
      <td>
        <Link to="/executions/$executionId" params={{ executionId: row.execution_id }} className="mono">
          {row.execution_id}
        </Link>{" "}
        <span className="quiet">v{row.version}</span>
      </td>
      <td className="number">
        <Ago at={row.started_at} />
      </td>
      <td>
        <Lasting from={row.started_at} to={row.ended_at} />
      </td>
      <td>
        <Link
          from="/entry/$"
          to="."
          search={(before) => ({ ...before, tab: "run", from: row.execution_id })}
          aria-label={`Run again with the inputs of ${row.execution_id}`}
        >
          with its inputs
        </Link>
      </td>
      <td className="one wide" title={row.error?.message}>
        {row.error?.message}
      </td>
    </tr>
  );
}
