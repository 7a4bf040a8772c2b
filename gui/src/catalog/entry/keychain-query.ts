import { infiniteQueryOptions } from "@tanstack/react-query";
import { answerOf, api } from "../../api/client.ts";

/** The keychain entries of one version, without their data. */
export function keychainEntries(catalogId: string) {
  return infiniteQueryOptions({
    queryKey: ["keychain", catalogId],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam, signal }) =>
      answerOf(
        api.GET("/api/keychain/catalog/{catalog_id}", {
          params: { path: { catalog_id: catalogId }, query: pageParam === null ? {} : { cursor: pageParam } },
          signal,
        }),
      ),
    getNextPageParam: (page) => page.next_cursor,
  });
}
