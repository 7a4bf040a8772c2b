import type { UseInfiniteQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { ProblemPanel } from "../parts/problem.tsx";

/** The body of a card with a list that comes in pages: loading, failed, empty, or `children` with a button for what is older. */
export function PagedList({
  pages,
  count,
  empty,
  children,
}: {
  pages: UseInfiniteQueryResult<unknown>;
  /** Rows that have come. */
  count: number;
  /** What is said where there are no rows. */
  empty: string;
  children: ReactNode;
}): ReactNode {
  return (
    <>
      {pages.isError && <ProblemPanel error={pages.error} again={() => void pages.refetch()} />}
      {pages.isPending && <p className="pad quiet">Loading …</p>}
      {pages.isSuccess && count === 0 && <p className="pad quiet">{empty}</p>}
      {count > 0 && children}
      {pages.hasNextPage && (
        <p className="pad">
          <button type="button" disabled={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
            Older ones
          </button>
        </p>
      )}
    </>
  );
}
