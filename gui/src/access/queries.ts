import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api } from "../api/client.ts";
import { queries } from "../api/queries.ts";

const page = (cursor: string | null) => (cursor === null ? {} : { cursor });

/** Users in the order in which they came. */
export function userList({ q, role }: { q?: string | undefined; role?: string | undefined }) {
  return infiniteQueryOptions({
    queryKey: ["users", q ?? "", role ?? ""],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam, signal }) => {
      const query = { ...page(pageParam), ...(q !== undefined && { q }), ...(role !== undefined && { role }) };
      return api("GET /api/auth/users", { query, signal });
    },
    getNextPageParam: (answer) => answer.next_cursor,
  });
}

/** One user. */
export function userDetail(user: string) {
  return queryOptions({
    queryKey: ["users", "one", user],
    queryFn: ({ signal }) => api("GET /api/auth/users/:user", { params: { user }, signal }),
  });
}

/** Sessions of a user that are not over, newest first. */
export function sessionList(user: string) {
  return infiniteQueryOptions({
    queryKey: ["users", "sessions", user],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam, signal }) =>
      api("GET /api/auth/sessions", { query: { ...page(pageParam), user, is_live: "true" }, signal }),
    getNextPageParam: (answer) => answer.next_cursor,
  });
}

/** Roles by name. */
export function roleList() {
  return infiniteQueryOptions({
    queryKey: ["roles"],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam, signal }) =>
      api("GET /api/auth/roles", { query: { ...page(pageParam), limit: "200" }, signal }),
    getNextPageParam: (answer) => answer.next_cursor,
  });
}

/** One role. */
export function roleDetail(role: string) {
  return queryOptions({
    queryKey: ["roles", "one", role],
    queryFn: ({ signal }) => api("GET /api/auth/roles/:role", { params: { role }, signal }),
  });
}

/** All global permissions: a form for a role shows all of it at once. */
export function permissionList() {
  return queryOptions({
    queryKey: ["permissions"],
    staleTime: 60_000,
    queryFn: async ({ signal }) => {
      const permissions: { name: string; description: string }[] = [];
      let cursor: string | null = null;
      do {
        const answer: PermissionsPage = await permissionPage(cursor, signal);
        permissions.push(...answer.permissions);
        cursor = answer.next_cursor;
      } while (cursor !== null);
      return { permissions };
    },
  });
}

function permissionPage(cursor: string | null, signal: AbortSignal) {
  const query = { ...page(cursor), limit: "500" };
  return api("GET /api/auth/permissions", { query, signal });
}

type PermissionsPage = Awaited<ReturnType<typeof permissionPage>>;

/** Filters of the audit log. */
export interface AuditFilters {
  actor?: string | undefined;
  action?: string | undefined;
  resource?: string | undefined;
  result?: "allow" | "deny" | "error" | undefined;
  since?: string | undefined;
  until?: string | undefined;
}

/** The audit log, newest first. */
export function auditList(filters: AuditFilters) {
  const { actor, action, resource, result, since, until } = filters;
  return infiniteQueryOptions({
    queryKey: ["audit", actor, action, resource, result, since, until],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam, signal }) => {
      const query = {
        ...page(pageParam),
        ...(actor !== undefined && { actor }),
        ...(action !== undefined && { action }),
        ...(resource !== undefined && { resource }),
        ...(result !== undefined && { result }),
        ...(since !== undefined && { since }),
        ...(until !== undefined && { until }),
      };
      return api("GET /api/auth/audit", { query, signal });
    },
    getNextPageParam: (answer) => answer.next_cursor,
  });
}

/** After a change of users or roles: reloads the shown lists and the current user's own permissions. */
export async function accessChanged(): Promise<void> {
  await Promise.all(
    ["users", "roles", "me", "can", "checked"].map((key) => queries.invalidateQueries({ queryKey: [key] })),
  );
}
