import { type ReactNode, useEffect, useState } from "react";
import { ProblemPanel } from "../parts/problem.tsx";
import { isFinal } from "../parts/status.tsx";
import { useTitle } from "../parts/title.ts";
import type { ExecutionFilters } from "./filter/queries.ts";
import { ROWS_MAX } from "./list-state.ts";
import { NoExecutions } from "./nothing.tsx";
import { ExecutionTable } from "./table.tsx";
import { useExecutionList } from "./use-list.ts";

/** The current list. While the user is at a row, or further down, nothing moves: new rows wait to be shown. */
export function ExecutionList({
  filters,
  marked,
  onMark,
}: {
  filters: ExecutionFilters;
  marked: ReadonlySet<string>;
  onMark(marked: ReadonlySet<string>): void;
}): ReactNode {
  const [at, setAt] = useState<string | undefined>();
  const [topId, setTopId] = useState<string | undefined>();
  const held = at !== undefined || topId !== undefined || marked.size > 0;
  const list = useExecutionList(filters, held, topId);
  const { rows, waiting, waitingMore, left, older } = list.state;
  const open = rows.filter(({ status }) => !isFinal(status)).length;
  useTitle(open > 0 ? `${open} open · Executions` : "Executions");
  const { loadOlder, isPending, error } = list;
  // A page may be empty, and not the last, where most of it may not be seen.
  useEffect(() => {
    if (rows.length === 0 && older !== null && error === null) loadOlder();
  }, [rows.length, older, error, loadOlder]);
  const show = () => {
    setAt(undefined);
    window.scrollTo({ top: 0 });
    list.showWaiting();
  };
  if (isPending && error === null) return <p className="quiet">Loading …</p>;
  if (error !== null && rows.length === 0) return <ProblemPanel error={error} again={list.again} />;
  if (rows.length === 0 && older === null) return <NoExecutions filters={filters} />;
  return (
    <>
      <div className="row list-state">
        <span className="quiet" role="status">
          {rows.length.toLocaleString("en")}
          {older === null ? "" : "+"} shown, {open} open
          {error !== null && `. They are as they were: ${error.message}`}
        </span>
        {waiting.length > 0 && (
          <button type="button" className="news" onClick={show}>
            {waitingMore ? `${waiting.length}+` : waiting.length} new: show
          </button>
        )}
      </div>
      <ExecutionTable
        rows={rows}
        left={left}
        at={at}
        onAt={setAt}
        onTop={setTopId}
        onEnd={loadOlder}
        marked={marked}
        onMark={onMark}
      />
      {older !== null && (
        <p className="quiet">
          {rows.length >= ROWS_MAX
            ? `These are the newest ${ROWS_MAX.toLocaleString("en")}. To go further back, choose an earlier time above.`
            : list.isLoadingOlder && "Loading older ones …"}
        </p>
      )}
    </>
  );
}
