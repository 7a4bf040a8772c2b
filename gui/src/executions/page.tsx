import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type ReactNode, useMemo, useState } from "react";
import { executionList } from "../app/queries.ts";
import { ProblemPanel } from "../parts/problem.tsx";
import { CancelMany } from "./cancel-many.tsx";
import { ErrorGroups } from "./error-groups.tsx";
import { Filters } from "./filters.tsx";
import { ExecutionTable } from "./table.tsx";

const route = getRouteApi("/executions");

/** What runs and what ran, newest first. */
export function ExecutionsPage(): ReactNode {
  const { view, ...filters } = route.useSearch();
  const pages = useInfiniteQuery(executionList(filters));
  const [marked, setMarked] = useState<ReadonlySet<string>>(new Set());
  const rows = useMemo(() => pages.data?.pages.flatMap(({ executions }) => executions) ?? [], [pages.data]);
  return (
    <div className="stack">
      <div className="row spread">
        <h1>Executions</h1>
        <CancelMany rows={rows} marked={marked} onDone={() => setMarked(new Set())} />
      </div>
      <Filters />
      {pages.isError && <ProblemPanel error={pages.error} again={() => void pages.refetch()} />}
      {pages.isPending && <p className="quiet">Loading …</p>}
      {pages.isSuccess &&
        (view === "errors" ? (
          <ErrorGroups rows={rows} />
        ) : (
          <ExecutionTable rows={rows} marked={marked} onMark={setMarked} />
        ))}
      {pages.hasNextPage && (
        <button type="button" disabled={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
          {pages.isFetchingNextPage ? "Loading …" : "Older ones"}
        </button>
      )}
    </div>
  );
}
