import { readFile } from "node:fs/promises";
import { loadCatalogDocument } from "../language/load/catalog-document.ts";
import type { McpServers } from "../ports/mcp-servers.ts";
import { type McpResource, mcpResourcePaths, readMcpResource } from "../schema/words/mcp-resource.ts";
import { findBelow, folderOf } from "./catalog.ts";

/** The MCP resources among the documents beside a playbook and below it, each read once. */
export function createFileMcpServers(): McpServers {
  const known = new Map<string, McpResource>();
  return {
    async find(name, file, signal) {
      const folder = folderOf(file);
      const key = JSON.stringify([folder, name]);
      const found = known.get(key) ?? (await search(folder, name, signal));
      if (found !== undefined) known.set(key, found);
      return found;
    },
  };
}

async function search(folder: string, name: string, signal: AbortSignal): Promise<McpResource | undefined> {
  for (const path of mcpResourcePaths(name)) {
    let resource: McpResource | undefined;
    const isMeant = async (file: string) => {
      resource = await readResource(file, path);
      return resource !== undefined;
    };
    await findBelow(folder, isMeant, signal);
    if (resource !== undefined) return resource;
  }
  return undefined;
}

/** Looks at the text first: parsing every document of a folder takes far longer. */
async function readResource(file: string, path: string): Promise<McpResource | undefined> {
  const text = await readFile(file, "utf8").catch(() => "");
  if (!text.includes(path) || !text.includes("Mcp")) return undefined;
  const { document } = loadCatalogDocument(text, file);
  return document?.kind === "mcp" && document.path === path ? readMcpResource(path, document.payload) : undefined;
}
