import { Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useEffect, useRef, useState } from "react";
import type { ExecutionItem } from "../api/types.ts";
import { isWriting } from "../app/keys.tsx";
import { Ago, Lasting } from "../parts/now.tsx";
import { isFinal, Status } from "../parts/status.tsx";

/** The list. `j`, `k` and Enter go through it, `x` marks. */
export function ExecutionTable({
  rows,
  marked,
  onMark,
}: {
  rows: readonly ExecutionItem[];
  marked: ReadonlySet<string>;
  onMark(marked: ReadonlySet<string>): void;
}): ReactNode {
  const toggle = (executionId: string) => {
    const next = new Set(marked);
    if (!next.delete(executionId)) next.add(executionId);
    onMark(next);
  };
  const [at, body] = useRowKeys(rows, toggle);
  if (rows.length === 0) return <Nothing />;
  return (
    <div className="panel scroll">
      <table>
        <thead>
          <tr>
            <th>
              <span className="unseen">Mark</span>
            </th>
            <th>Status</th>
            <th>Playbook</th>
            <th>Execution</th>
            <th>Started</th>
            <th>Took</th>
            <th className="wide">Error</th>
          </tr>
        </thead>
        <tbody ref={body}>
          {rows.map((row, position) => (
            <tr key={row.execution_id} aria-selected={position === at}>
              <td>
                <input
                  type="checkbox"
                  aria-label={`Mark ${row.execution_id}`}
                  disabled={isFinal(row.status)}
                  checked={marked.has(row.execution_id)}
                  onChange={() => toggle(row.execution_id)}
                />
              </td>
              <td>
                <Status of={row.status} />{" "}
                {row.status === "RUNNING" && <span className="number">{row.progress} %</span>}
              </td>
              <td className="one" title={row.path}>
                {row.path} <span className="quiet">v{row.version}</span>
              </td>
              <td>
                <Link to="/executions/$executionId" params={{ executionId: row.execution_id }} className="mono">
                  {row.execution_id}
                </Link>
              </td>
              <td className="number">
                <Ago at={row.started_at} />
              </td>
              <td>
                <Lasting from={row.started_at} to={row.ended_at} />
              </td>
              <td className="one wide" title={row.error?.message}>
                {row.error?.message}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Nothing(): ReactNode {
  return (
    <section className="panel">
      <h2>No execution is like this</h2>
      <p>
        Take a filter away, or start one: <code>flow run playbooks/examples/hello.yaml --runtime server</code>
      </p>
    </section>
  );
}

/** The row that the keys are at, and the body that has the rows. */
function useRowKeys(rows: readonly ExecutionItem[], toggle: (executionId: string) => void) {
  const [at, setAt] = useState(-1);
  const body = useRef<HTMLTableSectionElement>(null);
  const navigate = useNavigate();
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isWriting(event.target)) return;
      const row = rows[at];
      if (event.key === "j" || event.key === "k") {
        const next = Math.max(0, Math.min(rows.length - 1, at + (event.key === "j" ? 1 : -1)));
        setAt(next);
        body.current?.children[next]?.scrollIntoView({ block: "nearest" });
      } else if (row !== undefined && event.key === "Enter" && event.target === document.body) {
        void navigate({ to: "/executions/$executionId", params: { executionId: row.execution_id } });
      } else if (row !== undefined && event.key === "x" && !isFinal(row.status)) toggle(row.execution_id);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [rows, at, navigate, toggle]);
  return [at, body] as const;
}
