import type { McpServers } from "../../ports/mcp-servers.ts";
import { isJsonObject, own } from "../../schema/words/json.ts";
import { mcpResourcePaths, readMcpResource } from "../../schema/words/mcp-resource.ts";
import { refusal } from "./connection.ts";
import { callUntilAnswered, type RetryParts } from "./retry.ts";

/** Longest silence of the server: a document has 1 MiB at most. */
const CALL_MS = 10_000;

/**
 * The MCP resources of the server's catalog. Each is asked for when it is needed and kept nowhere: a newer version is used by the
 * next task. A server that cannot answer is asked again until the signal aborts.
 */
export function createServerMcpServers(parts: RetryParts): McpServers {
  return {
    async find(name, _file, signal) {
      for (const path of mcpResourcePaths(name).filter(isPath)) {
        const address = path
          .split("/")
          .map((segment) => encodeURIComponent(segment.replace(/\p{Surrogate}/gu, "\ufffd")));
        const reply = await callUntilAnswered(parts, {
          method: "GET",
          path: `/api/catalog/resource/${address.join("/")}`,
          timeoutMs: CALL_MS,
          signal,
        });
        if (reply.status === 404) continue;
        if (reply.status !== 200) throw refusal(reply);
        const entry = isJsonObject(reply.body) ? reply.body : {};
        const payload = own(entry, "payload");
        if (own(entry, "kind") === "mcp" && isJsonObject(payload)) return readMcpResource(path, payload);
      }
      return undefined;
    },
  };
}

/** What no catalog path can be would be another address. */
function isPath(path: string): boolean {
  return path.split("/").every((segment) => segment !== "" && segment !== "." && segment !== "..");
}
