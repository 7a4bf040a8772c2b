import type { McpServers } from "../../ports/mcp-servers.ts";
import { isRefusal } from "../../schema/routes/answer.ts";
import { CATALOG_ROUTES } from "../../schema/routes/catalog.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import { mcpResourcePaths, readMcpResource } from "../../schema/words/mcp-resource.ts";
import { callUntilAnswered, type RetryParts } from "./retry.ts";

/** Longest silence of the server: a document has 1 MiB at most. */
const CALL_MS = 10_000;

/**
 * The MCP resources of the server's catalog. Each is read when needed and not cached: the next task uses a newer version.
 * Failed requests are repeated until the signal aborts.
 */
export function createServerMcpServers(parts: RetryParts): McpServers {
  return {
    async find(name, _file, signal) {
      for (const path of mcpResourcePaths(name)) {
        const input = { params: { path }, timeoutMs: CALL_MS, signal };
        const entry = await callUntilAnswered(parts, CATALOG_ROUTES.resource, input).catch((error: unknown) => {
          if (isRefusal(error, 404)) return undefined;
          throw error;
        });
        if (entry?.kind === "mcp") return readMcpResource(path, entry.payload as JsonObject);
      }
      return undefined;
    },
  };
}
