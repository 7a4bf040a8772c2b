import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { readExecutionQuery } from "../../../../src/schema/rules/execution-query.ts";
import { api } from "../../api/client.ts";
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
  /** Only those that no other execution called. */
  roots?: boolean | undefined;
}

/** How often the list looks for news, milliseconds: it has no stream. */
const LIST_MS = 3_000;
/** Executions of one page of the list. */
export const PAGE = 100;

/** One page of the executions that a filter names, newest first. */
export function executionPage(filters: ExecutionFilters, cursor: string | null, limit: number, signal?: AbortSignal) {
  return api("GET /api/executions", {
    query: { ...queryOf(filters), ...(cursor !== null && { cursor }), limit: String(limit) },
    ...(signal !== undefined && { signal }),
  });
}

/** The parameters of the API that say what the filters do. */
function queryOf({ parent, path, since, roots, ...rest }: ExecutionFilters): Record<string, string> {
  const now = Date.now();
  // What is typed counts more than what is chosen beside it: the server wants it said once.
  const typed = readExecutionQuery(rest.q ?? "", now).filter ?? {};
  const query = {
    ...rest,
    path_contains: path,
    since: sinceOf(since, now),
    parent_execution_id: parent,
    roots_only: roots === true ? "true" : undefined,
  };
  return Object.fromEntries(
    Object.entries(query).flatMap(([name, value]) =>
      value === undefined || value === "" || Object.hasOwn(typed, name) ? [] : [[name, value]],
    ),
  );
}

/** How many executions the filters mean of each state, whichever of them are chosen. */
export function executionCounts({ status: _, ...filters }: ExecutionFilters) {
  return queryOptions({
    queryKey: ["executions", "counts", filters],
    // What cannot be read is told beside the search.
    enabled: readExecutionQuery(filters.q ?? "", Date.now()).problem === undefined,
    queryFn: ({ signal }) => api("GET /api/executions/counts", { query: queryOf(filters), signal }),
    refetchInterval: 2 * LIST_MS,
    placeholderData: keepPreviousData,
  });
}

/** The newest executions that one has called, as they are shown beneath it. */
export function calledBy(parent: string) {
  return queryOptions({
    queryKey: ["executions", "called by", parent],
    queryFn: ({ signal }) => executionPage({ parent }, null, PAGE, signal),
    refetchInterval: LIST_MS,
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
