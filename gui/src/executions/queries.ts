import { queryOptions } from "@tanstack/react-query";
import { readExecutionQuery } from "../../../src/schema/rules/execution-query.ts";
import { api } from "../api/client.ts";
import { sinceOf } from "./spans.ts";

/** Filters of a list of executions, as they stand in the address. */
export interface ExecutionFilters {
  /** States with commas: `PENDING,RUNNING`. */
  status?: string | undefined;
  /** What was typed, in the query language (`schema/rules/execution-query`). */
  q?: string | undefined;
  /** A part of the playbook's path, in older addresses and in links of other pages. */
  path?: string | undefined;
  /** A moment, or a span before now: see {@link sinceOf}. */
  since?: string | undefined;
  until?: string | undefined;
  parent?: string | undefined;
}

/** How often the list looks for news, milliseconds: it has no stream. */
const LIST_MS = 3_000;
/** Executions of one page of the list. */
export const PAGE = 100;

/** One page of the executions that a filter names, newest first. */
export function executionPage(filters: ExecutionFilters, cursor: string | null, limit: number, signal?: AbortSignal) {
  const { parent, path, since, ...rest } = filters;
  const now = Date.now();
  // What is typed counts more than what is chosen beside it: the server wants it said once.
  const typed = readExecutionQuery(filters.q ?? "", now).filter ?? {};
  const query = Object.entries({
    ...rest,
    path_contains: path,
    since: sinceOf(since, now),
    parent_execution_id: parent,
    cursor: cursor ?? undefined,
  }).filter(([name, value]) => value !== undefined && value !== "" && !Object.hasOwn(typed, name));
  return api("GET /api/executions", {
    query: { ...Object.fromEntries(query), limit: String(limit) },
    ...(signal !== undefined && { signal }),
  });
}

/** A page that is polled: the newest (`cursor` null), or the visible one. */
export function livePage(filters: ExecutionFilters, cursor: string | null) {
  return queryOptions({
    queryKey: ["executions", filters, cursor],
    queryFn: ({ signal }) => executionPage(filters, cursor, PAGE, signal),
    refetchInterval: LIST_MS,
    gcTime: 10_000,
  });
}
