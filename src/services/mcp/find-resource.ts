import type { CatalogEntry } from "../../repositories/catalog/catalog.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type McpResource, mcpResourcePaths, readMcpResource } from "../../schema/words/mcp-resource.ts";
import type { Catalog } from "../catalog/catalog.ts";

/** The MCP resource of this name, or of the name below `mcp/`; undefined where neither is registered as one. */
export async function findMcpResource(catalog: Pick<Catalog, "find">, name: string): Promise<McpResource | undefined> {
  for (const path of mcpResourcePaths(name)) {
    const entry = await findEntry(catalog, path);
    if (entry?.kind === "mcp") return readMcpResource(entry.path, entry.payload);
  }
  return undefined;
}

/** The newest version of a path; undefined where it is not registered. */
export async function findEntry(catalog: Pick<Catalog, "find">, path: string): Promise<CatalogEntry | undefined> {
  try {
    return await catalog.find(path);
  } catch (error) {
    if (error instanceof FlowError && error.code === "NOT_FOUND") return undefined;
    throw error;
  }
}
