import { isJsonObject, type Json, type JsonObject, own } from "./json.ts";

/** An MCP resource of the catalog, as tasks and the lifecycle route need it. */
export interface McpResource {
  /** Its catalog path. */
  path: string;
  /** Address of the server; templates over `env` may stand in it. */
  endpoint: string;
  /** Default streamable HTTP, and SSE with a server that does not know it. */
  transport: "streamable_http" | "sse" | undefined;
  /** The name of a credential, or a map, as a task's `auth`. */
  auth: Json | undefined;
  timeoutSeconds: number | undefined;
  /** Catalog paths of the playbooks that look after it, by action. */
  lifecycle: ReadonlyMap<string, string>;
}

/** Where a resource of this name is looked for in the catalog: as it was given, then below `mcp/`. */
export function mcpResourcePaths(name: string): string[] {
  return [name, `mcp/${name}`];
}

/** What the document of a resource says. It was checked when it was registered; what does not fit counts as absent. */
export function readMcpResource(path: string, payload: JsonObject): McpResource {
  const written = own(payload, "spec");
  const spec = isJsonObject(written) ? written : {};
  const of = (key: string) => own(spec, key) as Json | undefined;
  const [endpoint, transport, auth, timeout, lifecycle] = [
    of("endpoint") ?? of("url"),
    of("transport"),
    of("auth"),
    of("timeout_seconds"),
    of("lifecycle"),
  ];
  const actions = Object.entries(isJsonObject(lifecycle) ? lifecycle : {});
  return {
    path,
    endpoint: typeof endpoint === "string" ? endpoint : "",
    transport: transport === "sse" || transport === "streamable_http" ? transport : undefined,
    auth: auth ?? undefined,
    timeoutSeconds: typeof timeout === "number" && timeout > 0 ? timeout : undefined,
    lifecycle: new Map(actions.filter((entry): entry is [string, string] => typeof entry[1] === "string")),
  };
}
