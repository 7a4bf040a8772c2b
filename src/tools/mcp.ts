import { StreamableHTTPError } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CallToolResultSchema, ErrorCode, ListToolsResultSchema, McpError } from "@modelcontextprotocol/sdk/types.js";
import type { Agent } from "undici";
import * as v from "valibot";
import type { EgressGuard } from "../platform/egress.ts";
import { messageOf } from "../schema/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../schema/json.ts";
import { failed, type ToolResult } from "../schema/outcome.ts";
import { AnyJson, abortedResult, answering, configurationError, MapOfJson, parseConfig, TextLike } from "./config.ts";
import { resolveHttpAuth } from "./http-auth.ts";
import { createGuardedAgent } from "./http-dispatcher.ts";
import { kindOfStatus, requestFailure, rootCause } from "./http-failure.ts";
import { type McpSession, openMcpSession, TIMEOUT_OFF_MS } from "./mcp-transport.ts";
import type { Tool, ToolCall } from "./tool.ts";

/** What {@link createMcpTool} takes. */
export interface McpOptions {
  /** Which addresses may be reached; the same as for `http`. */
  egress: EgressGuard;
  /** Largest answer in bytes. Default 64 MiB. */
  responseBytesMax?: number;
  /** Longest wait for a connection, in milliseconds. Default 10,000. */
  connectTimeoutMs?: number;
}

/**
 * `mcp`: one call to a server of the Model Context Protocol (language document, section 8). Methods `health`,
 * `tools/list` and `tools/call`; result `{status, server, endpoint, method, tool, arguments, text, result}`, for health
 * `{status, healthy, text}` beside server, endpoint and method. Each task opens a session and ends it.
 *
 * A tool that answers `isError` fails the task (`client_error`, code `MCP_TOOL_ERROR`) and keeps the result. A server
 * that cannot be reached fails `health` too, with `healthy: false` in the data.
 */
export function createMcpTool(options: McpOptions): Tool {
  let agent: Agent | undefined;
  return {
    defaultTimeoutMs: 60_000,
    run: (call) =>
      answering(() => {
        const task = readMcpTask(call);
        agent ??= createGuardedAgent(options.egress, {
          verifySsl: true,
          connectTimeoutMs: options.connectTimeoutMs ?? 10_000,
        });
        return runMcpTask(call, task, agent, options.responseBytesMax ?? 64 * 1024 * 1024);
      }),
    async close() {
      await agent?.destroy();
      agent = undefined;
    },
  };
}

async function runMcpTask(call: ToolCall, task: McpTask, dispatcher: Agent, bytesMax: number): Promise<ToolResult> {
  const { endpoint, headers } = task;
  const what = `MCP ${task.method}${task.tool === undefined ? "" : ` ${task.tool}`} at ${endpoint.origin}${endpoint.pathname}`;
  let session: McpSession | undefined;
  try {
    session = await openMcpSession({ endpoint, headers, dispatcher, responseBytesMax: bytesMax, signal: call.signal });
    return await METHODS[task.method](session, task, call.signal);
  } catch (error) {
    const result = call.signal.aborted ? abortedResult(call.signal, what) : mcpFailure(what, error);
    if (task.method !== "health") return result;
    return { ...result, data: { ...header(task, "error"), healthy: false, text: result.error?.message ?? "" } };
  } finally {
    await session?.close();
  }
}

type Method = (session: McpSession, task: McpTask, signal: AbortSignal) => Promise<ToolResult>;

const METHODS: Record<McpTask["method"], Method> = { health, "tools/list": listTools, "tools/call": callTool };

async function health({ client }: McpSession, task: McpTask, signal: AbortSignal): Promise<ToolResult> {
  await client.ping({ signal, timeout: TIMEOUT_OFF_MS });
  const server = client.getServerVersion();
  const text = server === undefined ? "ok" : `${server.name} ${server.version}`;
  return { status: "ok", data: { ...header(task, "ok"), healthy: true, text } };
}

/** Pages of a tool list that are read at most. */
const LIST_PAGES_MAX = 100;

async function listTools({ client }: McpSession, task: McpTask, signal: AbortSignal): Promise<ToolResult> {
  const tools: Json[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < LIST_PAGES_MAX; page += 1) {
    // A plain request: the SDK's listTools also compiles the schemas that the server sends, which nothing here needs.
    const request = { method: "tools/list" as const, params: cursor === undefined ? {} : { cursor } };
    const answer = await client.request(request, ListToolsResultSchema, { signal, timeout: TIMEOUT_OFF_MS });
    tools.push(...(answer.tools as unknown as Json[]));
    cursor = answer.nextCursor;
    if (cursor === undefined) break;
  }
  const names = tools.map((tool) => (isJsonObject(tool) ? String(tool["name"]) : ""));
  return { status: "ok", data: { ...header(task, "ok"), text: names.join("\n"), result: { tools } } };
}

async function callTool({ client }: McpSession, task: McpTask, signal: AbortSignal): Promise<ToolResult> {
  const request = { method: "tools/call" as const, params: { name: task.tool ?? "", arguments: task.arguments } };
  const answer = await client.request(request, CallToolResultSchema, { signal, timeout: TIMEOUT_OFF_MS });
  const result = answer as unknown as JsonObject;
  const text = answer.content
    .map((part) => (part.type === "text" ? part.text : ""))
    .filter((part) => part !== "")
    .join("\n");
  const isError = answer.isError === true;
  const data: JsonObject = {
    ...header(task, isError ? "error" : "ok"),
    tool: task.tool ?? null,
    arguments: task.arguments,
    text,
    result,
  };
  if (!isError) return { status: "ok", data };
  const message = `MCP tool "${task.tool}" at ${task.endpoint.origin}${task.endpoint.pathname} failed: ${text.slice(0, 500) || "it gave no reason"}`;
  return { ...failed("client_error", "MCP_TOOL_ERROR", message), data };
}

function header(task: McpTask, status: string): JsonObject {
  return { status, server: task.server, endpoint: task.endpoint.href, method: task.method };
}

/** JSON-RPC codes that have a name of their own. */
const RPC_CODES: Readonly<Record<number, string>> = {
  [ErrorCode.InvalidParams]: "MCP_INVALID_PARAMS",
  [ErrorCode.MethodNotFound]: "MCP_METHOD_NOT_FOUND",
  [ErrorCode.InvalidRequest]: "MCP_INVALID_REQUEST",
  [ErrorCode.InternalError]: "MCP_INTERNAL_ERROR",
  [ErrorCode.ParseError]: "MCP_PARSE_ERROR",
};

function mcpFailure(what: string, thrown: unknown): ToolResult {
  if (thrown instanceof McpError) {
    if (thrown.code === ErrorCode.ConnectionClosed) return requestFailure(what, thrown);
    const kind = thrown.code === ErrorCode.InternalError ? "server_error" : "client_error";
    return failed(kind, RPC_CODES[thrown.code] ?? `MCP_${thrown.code}`, `${what} was refused: ${thrown.message}`);
  }
  const status = statusOf(thrown);
  if (status !== undefined) {
    return failed(
      kindOfStatus(status),
      `HTTP_${status}`,
      `${what} answered ${status}: ${messageOf(thrown).slice(0, 500)}`,
      {
        retryable: status === 429 || status >= 500,
        status,
        status_code: status,
      },
    );
  }
  if (
    thrown instanceof StreamableHTTPError ||
    rootCause(thrown) instanceof SyntaxError ||
    (thrown instanceof Error && thrown.name === "ZodError")
  ) {
    return failed(
      "parse",
      "MCP_PROTOCOL",
      `${what}: the answer is not of the Model Context Protocol: is this an MCP endpoint?`,
    );
  }
  return requestFailure(what, thrown);
}

function statusOf(error: unknown): number | undefined {
  const code = error instanceof StreamableHTTPError ? error.code : undefined;
  return code !== undefined && code >= 400 ? code : undefined;
}

interface McpTask {
  server: string | null;
  endpoint: URL;
  method: "health" | "tools/list" | "tools/call";
  tool: string | undefined;
  arguments: JsonObject;
  headers: Record<string, string>;
}

const McpConfig = v.object({
  server: v.optional(TextLike),
  endpoint: v.optional(TextLike),
  method: v.optional(v.picklist(["health", "tools/list", "tools/call"], "expects health, tools/list or tools/call")),
  tool: v.optional(TextLike),
  arguments: v.optional(v.union([v.string(), MapOfJson], "expects a map, or JSON text of one")),
  headers: v.optional(MapOfJson),
  auth: v.optional(AnyJson),
});

function readMcpTask(call: ToolCall): McpTask {
  const config = parseConfig("mcp", McpConfig, call.config);
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
  const auth = resolveHttpAuth(config.auth, call.auth);
  const endpoint = readEndpoint(config.server, config.endpoint);
  for (const [name, value] of Object.entries(auth.query)) endpoint.searchParams.set(name, value);
  return {
    server: config.server ?? null,
    endpoint,
    method,
    tool: config.tool,
    arguments: readArguments(config.arguments),
    headers: { ...headers, ...auth.headers },
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
      `The mcp task names the server "${text}". Servers registered by name are not available here: give its URL as "endpoint".`,
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
    // Told below, like JSON that is not a map.
  }
  throw configurationError(
    'The mcp task is not configured correctly: key "arguments" expects a map, or JSON text of one.',
  );
}
