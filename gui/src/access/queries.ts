import { infiniteQueryOptions } from "@tanstack/react-query";
import { answerOf, api } from "../api/client.ts";

const page = (cursor: string | null) => (cursor === null ? {} : { cursor });

/** Users by their address. */
export function userList(q: string | undefined) {
  return infiniteQueryOptions({
    queryKey: ["users", q ?? ""],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam, signal }) => {
      const query = { ...page(pageParam), ...(q !== undefined && { q }) };
      return answerOf(api.GET("/api/auth/users", { params: { query }, signal }));
    },
    getNextPageParam: (answer) => answer.next_cursor,
  });
}

/** Roles by name. */
export function roleList() {
  return infiniteQueryOptions({
    queryKey: ["roles"],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam, signal }) =>
      answerOf(api.GET("/api/auth/roles", { params: { query: page(pageParam) }, signal })),
    getNextPageParam: (answer) => answer.next_cursor,
  });
}

/** What is asked of the audit log. */
export interface AuditFilters {
  actor?: string | undefined;
  resource?: string | undefined;
  result?: "allow" | "deny" | "error" | undefined;
}

/** The audit log, newest first. */
export function auditList({ actor, resource, result }: AuditFilters) {
  return infiniteQueryOptions({
    queryKey: ["audit", actor, resource, result],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam, signal }) => {
      const query = {
        ...page(pageParam),
        ...(actor !== undefined && { actor }),
        ...(resource !== undefined && { resource }),
        ...(result !== undefined && { result }),
      };
      return answerOf(api.GET("/api/auth/audit", { params: { query }, signal }));
    },
    getNextPageParam: (answer) => answer.next_cursor,
  });
}
