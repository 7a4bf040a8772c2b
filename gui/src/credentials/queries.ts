import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api } from "../api/client.ts";

/** One credential without its data: no browser asks for them. */
export function credentialRecord(name: string) {
  return queryOptions({
    queryKey: ["credentials", "one", name],
    queryFn: ({ signal }) => api("GET /api/credentials/:identifier", { params: { identifier: name }, signal }),
  });
}

/** What names a credential in the catalog, page by page: one may be empty and not the last. */
export function credentialUses(name: string) {
  return infiniteQueryOptions({
    queryKey: ["credentials", "uses", name],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam, signal }) =>
      api("GET /api/credentials/:identifier/uses", {
        params: { identifier: name },
        query: pageParam === null ? {} : { cursor: pageParam },
        signal,
      }),
    getNextPageParam: (page) => page.next_cursor,
  });
}

/** Audit entries of a credential, newest first, for users who may read the audit log. */
export function credentialAudit(name: string) {
  return queryOptions({
    queryKey: ["credentials", "audit", name],
    queryFn: ({ signal }) =>
      api("GET /api/auth/audit", { query: { resource: `credential/${name}`, limit: "50" }, signal }),
  });
}
