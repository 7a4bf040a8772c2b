import { infiniteQueryOptions } from "@tanstack/react-query";
import { api } from "../../api/client.ts";

/** The keychain entries of one version, without their data. */
export function keychainEntries(catalogId: string) {
  return infiniteQueryOptions({
    queryKey: ["keychain", catalogId],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam, signal }) =>
      api("GET /api/keychain/catalog/:catalog_id", {
        params: { catalog_id: catalogId },
        query: pageParam === null ? {} : { cursor: pageParam },
        signal,
      }),
    getNextPageParam: (page) => page.next_cursor,
  });
}
