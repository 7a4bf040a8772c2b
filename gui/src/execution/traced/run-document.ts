import { queryOptions } from "@tanstack/react-query";
import { api } from "../../api/client.ts";
import { keptDraft } from "../../api/queries.ts";
import type { Execution, Resource } from "../../api/types.ts";

/** The document that an execution runs: a version, or a draft. */
export function runDocument({ path, version, catalog_id }: Pick<Execution, "path" | "version" | "catalog_id">) {
  return queryOptions({
    queryKey: ["catalog", path, version === 0 ? `draft ${catalog_id}` : String(version)],
    staleTime: Number.POSITIVE_INFINITY,
    queryFn: async ({ client, signal }): Promise<Pick<Resource, "payload" | "content">> => {
      if (version > 0) {
        const query = { version: String(version) };
        return await api("GET /api/catalog/resource/:path{.+}", { params: { path }, query, signal });
      }
      const { content } = await client.fetchQuery(keptDraft(catalog_id));
      const { parseDocument } = await import("yaml");
      return { content, payload: parseDocument(content).toJS({ maxAliasCount: 100 }) as Resource["payload"] };
    },
  });
}
