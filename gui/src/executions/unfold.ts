import { useQueries } from "@tanstack/react-query";
import { useCallback, useMemo, useState } from "react";
import type { ExecutionItem } from "../api/types.ts";
import { calledBy } from "./filter/queries.ts";
import type { ListPage } from "./list-state.ts";

/** A row of the table: an execution at a depth of calls, or where there are more of them than are shown. */
export type TreeRow =
  | { key: string; depth: number; item: ExecutionItem; moreOf?: undefined }
  | { key: string; depth: number; moreOf: string; item?: undefined };

/** Executions with those beneath them that they called, where they are unfolded. */
export interface Unfolding {
  rows: readonly TreeRow[];
  unfolded: ReadonlySet<string>;
  toggle(executionId: string): void;
}

const dataOf = (results: readonly { data: ListPage | undefined }[]) => results.map(({ data }) => data);

/** Which executions are unfolded, and the rows that follow from it. What is unfolded is read every few seconds, as the list is. */
export function useUnfolding(items: readonly ExecutionItem[]): Unfolding {
  const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set());
  const ids = useMemo(() => [...unfolded], [unfolded]);
  const called = useQueries({
    queries: ids.map(calledBy),
    combine: dataOf,
  });
  const rows = useMemo(() => {
    const pages = new Map(ids.map((id, index) => [id, called[index]]));
    const rowsOf = (item: ExecutionItem, depth: number): TreeRow[] => {
      const page = pages.get(item.execution_id);
      const own: TreeRow = { key: item.execution_id, depth, item };
      if (page === undefined) return [own];
      const beneath = page.executions.flatMap((child) => rowsOf(child, depth + 1));
      const more: TreeRow = { key: `more ${item.execution_id}`, depth: depth + 1, moreOf: item.execution_id };
      return [own, ...beneath, ...(page.next_cursor === null ? [] : [more])];
    };
    return items.flatMap((item) => rowsOf(item, 0));
  }, [items, called, ids]);
  const toggle = useCallback((executionId: string) => {
    setUnfolded((before) => {
      const next = new Set(before);
      if (!next.delete(executionId)) next.add(executionId);
      return next;
    });
  }, []);
  return { rows, unfolded, toggle };
}
