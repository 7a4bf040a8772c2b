import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useRef } from "react";
import { executionList } from "../api/queries.ts";
import type { Execution, ExecutionItem } from "../api/types.ts";
import { Lasting } from "../parts/now.tsx";
import { ProblemPanel } from "../parts/problem.tsx";
import { Status } from "../parts/status.tsx";

const route = getRouteApi("/executions/$executionId");
const ROW_PX = 32;
/** States among which one chooses. */
const STATES = ["RUNNING", "PAUSED", "FAILED", "COMPLETED", "CANCELLED"] as const;

/** The executions that this one called, newest first, live while it runs. */
export function Children({ execution }: { execution: Execution }): ReactNode {
  const { state: chosen } = route.useSearch();
  const status = STATES.find((state) => state === chosen);
  const pages = useInfiniteQuery({
    ...executionList({ parent: execution.execution_id, status }),
    ...(execution.ended_at !== null && { refetchInterval: false }),
  });
  const rows = pages.data?.pages.flatMap((page) => page.executions) ?? [];
  if (pages.isError && rows.length === 0) {
    return <ProblemPanel error={pages.error} again={() => void pages.refetch()} />;
  }
  return (
    <div className="stack">
      <nav className="row" aria-label="States of what it called">
        {[undefined, ...STATES].map((state) => (
          <Link
            key={state ?? "all"}
            from="/executions/$executionId"
            to="."
            search={(before) => ({ ...before, state })}
            replace
            resetScroll={false}
            className="button"
            aria-current={state === status ? "true" : undefined}
          >
            {state?.toLowerCase() ?? "all"}
          </Link>
        ))}
        <span className="quiet" role="status">
          {rows.length.toLocaleString("en")}
          {pages.hasNextPage && " and more"}
        </span>
      </nav>
      {pages.isPending ? (
        <p className="quiet">Loading …</p>
      ) : rows.length === 0 ? (
        <section className="panel">
          <h2>
            {status === undefined ? "It has called no other playbook" : `None of them is ${status.toLowerCase()}`}
          </h2>
          <p>
            Steps of the kind <code>playbook</code> start executions of their own; they are listed here.
          </p>
        </section>
      ) : (
        <ChildList rows={rows} />
      )}
      {pages.hasNextPage && (
        <button type="button" disabled={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
          Earlier ones
        </button>
      )}
    </div>
  );
}

function ChildList({ rows }: { rows: readonly ExecutionItem[] }): ReactNode {
  const scroller = useRef<HTMLElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 15,
  });
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys
    <section className="list" ref={scroller} aria-label="What it called" tabIndex={0}>
      <div style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map(({ index, start }) => {
          const row = rows[index];
          return row === undefined ? null : (
            <div key={row.execution_id} className="at" style={{ top: start }}>
              <ChildRow row={row} />
            </div>
          );
        })}
      </div>
    </section>
  );
}

function ChildRow({ row }: { row: ExecutionItem }): ReactNode {
  return (
    <Link to="/executions/$executionId" params={{ executionId: row.execution_id }} className="child-row">
      <Status of={row.status} />
      <span className="name" title={row.path}>
        {row.path} <span className="quiet">v{row.version}</span>
      </span>
      <span className="mono wide">{row.execution_id}</span>
      <span className="quiet wide" title={row.error?.message}>
        {row.error?.message ?? (row.status === "RUNNING" ? `${row.progress} %` : "")}
      </span>
      <span className="number quiet">
        <Lasting from={row.started_at} to={row.ended_at} />
      </span>
    </Link>
  );
}
