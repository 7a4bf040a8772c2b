import { infiniteQueryOptions, MutationCache, QueryCache, QueryClient, queryOptions } from "@tanstack/react-query";
import type { CredentialType } from "../../../src/schema/rules/credential-types.ts";
import { api, isLockedOut } from "./client.ts";
import { readExecution } from "./execution.ts";
import { Problem } from "./problem.ts";
import type { Execution } from "./types.ts";

/** Called when a call says that the user has to log in. */
export const lockedOut = new EventTarget();

/** No answer, too many calls of this user, a server that is busy: it helps to ask again. */
const AGAIN: ReadonlySet<number> = new Set([0, 429, 503]);

/** What is read, and how it is refreshed. Refused calls are not retried. */
export const queries = new QueryClient({
  queryCache: new QueryCache({ onError: noticeLockOut }),
  mutationCache: new MutationCache({ onError: noticeLockOut }),
  defaultOptions: {
    queries: {
      staleTime: 1_000,
      retry: (times, error) => times < 5 && error instanceof Problem && AGAIN.has(error.status),
      retryDelay: (times) => Math.min(10_000, 500 * 2 ** times),
    },
  },
});

function noticeLockOut(error: unknown): void {
  if (isLockedOut(error)) lockedOut.dispatchEvent(new Event("lockedout"));
}

/** How often lists look for news, milliseconds: they have no stream. */
const LIST_MS = 3_000;

/** Executions of a path, or that one of them has called, newest first, page by page. */
export function executionList(of: { path: string } | { parent: string; status: string | undefined }) {
  const query =
    "path" in of
      ? { path: of.path }
      : { parent_execution_id: of.parent, ...(of.status !== undefined && { status: of.status }) };
  return infiniteQueryOptions({
    queryKey: ["executions", "of", of],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam, signal }) => {
      const page = { ...query, limit: "100", ...(pageParam !== null && { cursor: pageParam }) };
      return api("GET /api/executions", { query: page, signal });
    },
    getNextPageParam: (page) => page.next_cursor,
    refetchInterval: LIST_MS,
  });
}

/** One execution with its steps. Live events make it be read again. */
export function executionDetail(executionId: string) {
  return queryOptions({
    queryKey: ["execution", executionId],
    queryFn: ({ client, queryKey, signal }) =>
      readExecution(executionId, client.getQueryData<Execution>(queryKey), signal),
  });
}

/** The newest version of each path. */
export function catalogList(filters: {
  kind?: "playbook" | "agent" | "mcp" | "trigger" | undefined;
  prefix?: string | undefined;
  /** Only those that call this path. */
  calls?: string | undefined;
}) {
  const { kind, prefix, calls } = filters;
  return infiniteQueryOptions({
    queryKey: ["catalog", "list", filters],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam, signal }) => {
      const query = {
        limit: "200",
        ...(kind !== undefined && { resource_type: kind }),
        ...(prefix !== undefined && { prefix }),
        ...(calls !== undefined && { calls }),
        ...(pageParam !== null && { cursor: pageParam }),
      };
      return api("GET /api/catalog", { query, signal });
    },
    getNextPageParam: (page) => page.next_cursor,
  });
}

/** The versions of a path, newest first. */
export function catalogVersions(path: string) {
  return infiniteQueryOptions({
    queryKey: ["catalog", "versions", path],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam, signal }) =>
      api("GET /api/catalog/versions/:path{.+}", {
        params: { path },
        query: pageParam === null ? {} : { cursor: pageParam },
        signal,
      }),
    getNextPageParam: (page) => page.next_cursor,
  });
}

/** A version of a path with its document. */
export function catalogEntry(path: string, version: string) {
  return queryOptions({
    queryKey: ["catalog", path, version],
    staleTime: version === "latest" ? 5_000 : Number.POSITIVE_INFINITY,
    queryFn: ({ signal }) =>
      api("GET /api/catalog/resource/:path{.+}", { params: { path }, query: { version }, signal }),
  });
}

/** A text that was run without being registered. It never changes. */
export function keptDraft(catalogId: string) {
  return queryOptions({
    queryKey: ["draft", catalogId],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: ({ signal }) => api("GET /api/catalog/entries/:catalog_id", { params: { catalog_id: catalogId }, signal }),
  });
}

function defined<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined && value !== "")) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}

/** The workers, with what each says of itself. */
export function workerPool() {
  return queryOptions({
    queryKey: ["workers"],
    queryFn: ({ signal }) => api("GET /api/worker/pools", { query: { limit: "500" }, signal }),
    refetchInterval: LIST_MS,
  });
}

/** Why is nothing running. What was read last stays while the server is gone. */
export function overview() {
  return queryOptions({
    queryKey: ["overview"],
    queryFn: ({ signal }) => api("GET /api/admin/overview", { signal }),
    // Its statements are bounded.
    refetchInterval: LIST_MS,
    retry: false,
  });
}

/** Credentials without their data. */
export function credentialList(filters: {
  q?: string | undefined;
  type?: CredentialType | undefined;
  tag?: string | undefined;
}) {
  return infiniteQueryOptions({
    queryKey: ["credentials", filters],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam, signal }) => {
      const query = {
        ...defined(filters),
        ...(pageParam !== null && { cursor: pageParam }),
      };
      return api("GET /api/credentials", { query, signal });
    },
    getNextPageParam: (page) => page.next_cursor,
  });
}

/** Agents that are shown in terminals. */
export function agentList() {
  return queryOptions({
    queryKey: ["agents"],
    queryFn: ({ signal }) => api("POST /api/catalog/agents/list", { body: { limit: 500 }, signal }),
  });
}

/** The current user: a user of the gateway, or the holder of the token. */
export function me() {
  return queryOptions({
    queryKey: ["me"],
    staleTime: 60_000,
    queryFn: ({ signal }) => api("GET /api/auth/me", { signal }),
  });
}
