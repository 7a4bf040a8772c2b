import * as v from "valibot";
import { isJsonObject, type JsonObject } from "../../schema/words/json.ts";
import { AnyJson, configurationError, MapOfJson, parseConfig, TextLike } from "../contract/task-config.ts";
import type { ToolCall } from "../contract/tool.ts";
import { resolveHttpAuth, takeUserInfo } from "../http/auth.ts";

/** What a task can do with a server. Of those that read or get, the arguments are the parameters of the request. */
const MCP_METHODS = [
  "health",
  "tools/list",
  "tools/call",
  "resources/list",
  "resources/templates/list",
  "resources/read",
  "prompts/list",
  "prompts/get",
] as const;
type McpMethod = (typeof MCP_METHODS)[number];

/** A task of kind `mcp`, parsed. */
export interface McpTask {
  /** As written. */
  server: string | null;
  /** With the query parameters of an api_key credential. */
  endpoint: URL;
  /** Without them: what may stand in results. */
  shownEndpoint: string;
  transport: "streamable_http" | "sse" | undefined;
  method: McpMethod;
  tool: string | undefined;
  arguments: JsonObject;
  /** By lower-case name. */
  headers: Record<string, string>;
  /** Authorities of the server's certificate (PEM), where a credential names them. */
  ca: string | undefined;
  /** Tokens that were requested for it. */
  requestedTokens: readonly string[];
  /** The JSON-RPC messages are to stand in the result. */
  messages: boolean;
}

const McpConfig = v.object({
  server: v.optional(TextLike),
  endpoint: v.optional(TextLike),
  transport: v.optional(v.picklist(["streamable_http", "sse"], "expects streamable_http or sse")),
  method: v.optional(v.picklist(MCP_METHODS, `expects ${MCP_METHODS.join(", ")}`)),
  tool: v.optional(TextLike),
  arguments: v.optional(v.union([v.string(), MapOfJson], "expects a map, or JSON text of one")),
  headers: v.optional(MapOfJson),
  messages: v.optional(v.boolean("expects true or false")),
  auth: v.optional(AnyJson),
});

/**
 * The keys of a task; an empty text counts as absent, because agents pass on inputs that were not given. The default method is
 * `tools/call` if a tool is named, else `health`. Throws FlowError `INVALID_INPUT` for keys that do not fit.
 */
export async function readMcpTask(call: ToolCall): Promise<McpTask> {
  const given = Object.entries(call.config).filter(([, value]) => value !== "");
  const config = parseConfig("mcp", McpConfig, Object.fromEntries(given));
  const method = config.method ?? (config.tool === undefined ? "health" : "tools/call");
  if (method === "tools/call" && config.tool === undefined) {
    throw configurationError(
      'The mcp task has method tools/call and no "tool". Method tools/list shows the server\'s tools.',
    );
  }
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(config.headers ?? {})) {
    if (value !== null) headers[name.toLowerCase()] = typeof value === "object" ? JSON.stringify(value) : String(value);
  }
  const auth = await resolveHttpAuth(config.auth, call.auth, call.tokens?.of);
  const endpoint = readEndpoint(config.server, config.endpoint);
  takeUserInfo(endpoint, auth);
  const shownEndpoint = endpoint.href;
  for (const [name, value] of Object.entries(auth.query)) endpoint.searchParams.set(name, value);
  return {
    server: config.server ?? null,
    endpoint,
    shownEndpoint,
    transport: config.transport,
    method,
    tool: config.tool,
    arguments: readArguments(config.arguments),
    headers: { ...headers, ...auth.headers },
    ca: auth.ca,
    requestedTokens: auth.requested ?? [],
    messages: config.messages ?? false,
  };
}

function readEndpoint(server: string | undefined, endpoint: string | undefined): URL {
  const text = endpoint ?? server;
  if (text === undefined)
    throw configurationError('The mcp task has no "endpoint" (the URL of the server) and no "server".');
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === "http:" || url?.protocol === "https:") return url;
  if (endpoint === undefined) {
    throw configurationError(
      `The mcp task names the server "${text}", and there is no catalog here to look it up in: give its URL as "endpoint".`,
    );
  }
  throw configurationError(`The mcp task's endpoint "${text.slice(0, 200)}" is not a URL of http or https.`);
}

function readArguments(value: string | JsonObject | undefined): JsonObject {
  if (value === undefined || value === "") return {};
  if (typeof value !== "string") return value;
  try {
    const parsed: unknown = JSON.parse(value);
    if (isJsonObject(parsed)) return parsed;
  } catch {
    // Reported below, like JSON that is not a map.
  }
  throw configurationError(
    'The mcp task is not configured correctly: key "arguments" expects a map, or JSON text of one.',
  );
}
