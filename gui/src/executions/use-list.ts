import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useState } from "react";
import { isFinal } from "../parts/status.tsx";
import { type ExecutionFilters, executionPage, livePage, PAGE } from "./filter/queries.ts";
import { EMPTY, idOf, type ListState, ROWS_MAX, withNewest, withOlder, withPage } from "./list-state.ts";

/** A list of executions that stays as it is now. */
export interface LiveList {
  state: ListState;
  /** The first page is on its way. */
  isPending: boolean;
  /** Why the last look failed; what was read before stays. */
  error: Error | null;
  isLoadingOlder: boolean;
  /** Reads the next older page, if there is one and room for it. */
  loadOlder(): void;
  showWaiting(): void;
  again(): void;
}

/**
 * Polls the newest page every few seconds, and the visible one if it contains open executions. `held`: new rows wait. `topId`
 * is the first visible row; undefined at the top.
 */
export function useExecutionList(filters: ExecutionFilters, held: boolean, topId: string | undefined): LiveList {
  const [state, setState] = useState<ListState>(EMPTY);
  const [isLoadingOlder, setLoadingOlder] = useState(false);
  const [olderError, setOlderError] = useState<Error | null>(null);
  const newest = useQuery(livePage(filters, null));
  useEffect(() => {
    const page = newest.data;
    if (page !== undefined) setState((before) => withNewest(before, page, held));
  }, [newest.data, held]);
  const anchor = anchorOf(state, topId);
  const seen = useQuery({ ...livePage(filters, anchor?.cursor ?? ""), enabled: anchor !== undefined });
  useEffect(() => {
    const page = seen.data;
    if (page !== undefined && anchor !== undefined) {
      setState((before) => withPage(before, page, anchor.below, held));
    }
  }, [seen.data, anchor, held]);
  const { older } = state;
  const isFull = state.rows.length >= ROWS_MAX;
  const loadOlder = useCallback(() => {
    if (older === null || isFull || isLoadingOlder) return;
    setLoadingOlder(true);
    executionPage(filters, older, PAGE)
      .then(
        (page) => {
          setOlderError(null);
          setState((before) => (before.older === older ? withOlder(before, page) : before));
        },
        (error: Error) => setOlderError(error),
      )
      .finally(() => setLoadingOlder(false));
  }, [older, isFull, isLoadingOlder, filters]);
  return {
    state,
    isPending: newest.isPending,
    error: newest.error ?? olderError,
    isLoadingOlder,
    loadOlder,
    showWaiting() {
      const page = newest.data;
      if (page !== undefined) setState((before) => withNewest(before.waitingMore ? EMPTY : before, page, false));
    },
    again() {
      setOlderError(null);
      void newest.refetch();
    },
  };
}

/** The known page that is looked at, where something in it may still change; the newest is read anyway. */
function anchorOf({ rows, anchors }: ListState, topId: string | undefined): ListState["anchors"][number] | undefined {
  if (topId === undefined) return undefined;
  const top = Number(topId);
  const anchor = anchors.findLast(({ below }) => below > top);
  if (anchor === undefined) return undefined;
  const first = rows.findIndex((row) => idOf(row) < anchor.below);
  return rows.slice(first, first + PAGE).some(({ status }) => !isFinal(status)) ? anchor : undefined;
}
