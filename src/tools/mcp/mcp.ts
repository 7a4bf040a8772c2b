import { SseError } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPError } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CallToolResultSchema,
  type ClientRequest,
  ErrorCode,
  GetPromptResultSchema,
  ListPromptsResultSchema,
  ListResourcesResultSchema,
  ListResourceTemplatesResultSchema,
  ListToolsResultSchema,
  McpError,
  ReadResourceResultSchema,
} from "@modelcontextprotocol/sdk/types.js";
import type { Agent } from "undici";
import type { EgressGuard } from "../../platform/http/egress.ts";
import { defined } from "../../schema/words/defined.ts";
import { messageOf } from "../../schema/words/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../schema/words/json.ts";
import { failed, type ToolResult } from "../../schema/words/outcome.ts";
import { abortedResult, answering } from "../contract/task-config.ts";
import type { Tool, ToolCall } from "../contract/tool.ts";
import { createGuardedAgents } from "../http/dispatcher.ts";
import { kindOfStatus, requestFailure, rootCause } from "../http/errors.ts";
import { createMessageRecord, type MessageRecord } from "./message-record.ts";
import { type McpTask, readMcpTask } from "./task.ts";
import { type McpSession, McpStreamEnded, openMcpSession, TIMEOUT_OFF_MS } from "./transport.ts";

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
 * `tools/list` and `tools/call`, and the same of resources and prompts; result `{status, server, endpoint, method, tool, arguments, text, result}`, for health
 * `{status, healthy, text}` beside server, endpoint and method; with `messages: true` the JSON-RPC messages too. Each task opens a session and ends it.
 *
 * A tool that answers `isError` fails the task (`client_error`, code `MCP_TOOL_ERROR`) and keeps the result. A server
 * that cannot be reached fails `health` too, with `healthy: false` in the data.
 */
export function createMcpTool(options: McpOptions): Tool {
  const agents = createGuardedAgents(options.egress, { connectTimeoutMs: options.connectTimeoutMs ?? 10_000 });
  return {
    defaultTimeoutMs: 60_000,
    run: (call) =>
      answering(async () => {
        const task = await readMcpTask(call);
        const agent = agents.of({ verifySsl: true, ca: task.ca });
        const result = await runMcpTask(call, task, agent, options.responseBytesMax ?? 64 * 1024 * 1024);
        if (result.error?.status === 401) for (const token of task.requestedTokens) call.tokens?.forget(token);
        return result;
      }),
    close: () => agents.close(),
  };
}

async function runMcpTask(call: ToolCall, task: McpTask, dispatcher: Agent, bytesMax: number): Promise<ToolResult> {
  const { endpoint, headers, transport } = task;
  const what = `MCP ${task.method}${task.tool === undefined ? "" : ` ${task.tool}`} at ${endpoint.origin}${endpoint.pathname}`;
  const record = task.messages ? createMessageRecord(() => performance.now()) : undefined;
  const target = { endpoint, transport, headers, dispatcher, responseBytesMax: bytesMax, signal: call.signal, record };
  // A caller who cannot even initialise a session lacks more than the permission to call tools.
  let isOpen = false;
  const work: Work = (session) => {
    isOpen = true;
    return METHODS[task.method](session, task, call);
  };
  try {
    return withMessages(await inSession(() => openMcpSession(target), work), task, record);
  } catch (error) {
    const result = call.signal.aborted
      ? abortedResult(call.signal, what)
      : mcpFailure(what, isOpen && task.method === "tools/call", error);
    if (task.method !== "health") return withMessages(result, task, record);
    const data = { ...header(task, "error"), healthy: false, text: result.error?.message ?? "" };
    return withMessages({ ...result, data }, task, record);
  }
}

/** The messages stand in the data of failed calls too: why a server refused is what people look at them for. */
function withMessages(result: ToolResult, task: McpTask, record: MessageRecord | undefined): ToolResult {
  if (record === undefined) return result;
  const data = isJsonObject(result.data) ? result.data : header(task, "error");
  return { ...result, data: { ...data, messages: record.list() } };
}

type Work = (session: McpSession) => Promise<ToolResult>;

/**
 * Works within a session and ends it. A server that has forgotten the session answers 404 and has done nothing: the work is done
 * once more, in a new one.
 */
async function inSession(open: () => Promise<McpSession>, work: Work, mayBeForgotten = true): Promise<ToolResult> {
  const session = await open();
  try {
    return await Promise.race([work(session), session.broken]);
  } catch (error) {
    if (!(mayBeForgotten && session.hasId && statusOf(error) === 404)) throw error;
  } finally {
    await session.close();
  }
  return await inSession(open, work, false);
}

type Method = (session: McpSession, task: McpTask, call: ToolCall) => Promise<ToolResult>;

const METHODS: Record<McpTask["method"], Method> = {
  health,
  "tools/list": listing("tools/list", "tools", "name", ListToolsResultSchema),
  "tools/call": callTool,
  "resources/list": listing("resources/list", "resources", "uri", ListResourcesResultSchema),
  "resources/templates/list": listing(
    "resources/templates/list",
    "resourceTemplates",
    "uriTemplate",
    ListResourceTemplatesResultSchema,
  ),
  "resources/read": reading("resources/read", ReadResourceResultSchema),
  "prompts/list": listing("prompts/list", "prompts", "name", ListPromptsResultSchema),
  "prompts/get": reading("prompts/get", GetPromptResultSchema),
};

async function health({ client }: McpSession, task: McpTask, { signal }: ToolCall): Promise<ToolResult> {
  await client.ping({ signal, timeout: TIMEOUT_OFF_MS });
  const server = client.getServerVersion();
  const text = server === undefined ? "ok" : `${server.name} ${server.version}`;
  return { status: "ok", data: { ...header(task, "ok"), healthy: true, text } };
}

/** Most pages of a list to read: a server may return a next page for ever. */
const LIST_PAGES_MAX = 1_000;

type Listed =
  | typeof ListToolsResultSchema
  | typeof ListResourcesResultSchema
  | typeof ListResourceTemplatesResultSchema
  | typeof ListPromptsResultSchema;

/** Reads a list to its last page. `name`: what of an item stands in the text. */
function listing(method: McpTask["method"], key: string, name: string, schema: Listed): Method {
  return async ({ client }, task, { signal }) => {
    const items: Json[] = [];
    let cursor: string | undefined;
    for (let page = 1; ; page += 1) {
      // A plain request: the SDK's listTools also compiles the schemas that the server sends, which nothing here needs.
      const request = { method, params: cursor === undefined ? {} : { cursor } } as ClientRequest;
      const answer = await client.request(request, schema as typeof ListToolsResultSchema, {
        signal,
        timeout: TIMEOUT_OFF_MS,
      });
      items.push(...((answer as unknown as JsonObject)[key] as Json[]));
      if (answer.nextCursor === undefined) break;
      if (answer.nextCursor === cursor || page === LIST_PAGES_MAX) {
        const message = `MCP ${method} at ${task.shownEndpoint} has no end: page ${page} gives another cursor for a next one`;
        return failed("client_error", "MCP_LIST_ENDLESS", message);
      }
      cursor = answer.nextCursor;
    }
    const names = items.map((item) => (isJsonObject(item) ? String(item[name]) : ""));
    return { status: "ok", data: { ...header(task, "ok"), text: names.join("\n"), result: { [key]: items } } };
  };
}

/** One request, whose parameters are the task's arguments. */
function reading(
  method: McpTask["method"],
  schema: typeof ReadResourceResultSchema | typeof GetPromptResultSchema,
): Method {
  return async ({ client }, task, { signal }) => {
    const request = { method, params: task.arguments } as unknown as ClientRequest;
    const answer = await client.request(request, schema as typeof ReadResourceResultSchema, {
      signal,
      timeout: TIMEOUT_OFF_MS,
    });
    const result = answer as unknown as JsonObject;
    return { status: "ok", data: { ...header(task, "ok"), arguments: task.arguments, text: textsOf(result), result } };
  };
}

/** The texts of a resource's contents, or of a prompt's messages. */
function textsOf({ contents, messages }: JsonObject): string {
  const parts = [contents, messages].flatMap((list) => (Array.isArray(list) ? list : [])).filter(isJsonObject);
  return parts
    .map((part) => (isJsonObject(part["content"]) ? part["content"]["text"] : part["text"]))
    .filter((text) => typeof text === "string")
    .join("\n");
}

async function callTool({ client }: McpSession, task: McpTask, { signal, progress }: ToolCall): Promise<ToolResult> {
  const request = { method: "tools/call" as const, params: { name: task.tool ?? "", arguments: task.arguments } };
  const answer = await client.request(request, CallToolResultSchema, {
    signal,
    timeout: TIMEOUT_OFF_MS,
    ...(progress !== undefined && {
      onprogress: ({ progress: done, total }) => progress({ progress: done, ...defined({ total }) }),
    }),
  });
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
  const message = `MCP tool "${task.tool}" at ${task.shownEndpoint} failed: ${text.slice(0, 500) || "it gave no reason"}`;
  return { ...failed("client_error", "MCP_TOOL_ERROR", message), data };
}

function header(task: McpTask, status: string): JsonObject {
  return { status, server: task.server, endpoint: task.shownEndpoint, method: task.method };
}

/** JSON-RPC codes that have a name of their own. */
const RPC_CODES: Readonly<Record<number, string>> = {
  [ErrorCode.InvalidParams]: "MCP_INVALID_PARAMS",
  [ErrorCode.MethodNotFound]: "MCP_METHOD_NOT_FOUND",
  [ErrorCode.InvalidRequest]: "MCP_INVALID_REQUEST",
  [ErrorCode.InternalError]: "MCP_INTERNAL_ERROR",
  [ErrorCode.ParseError]: "MCP_PARSE_ERROR",
};

/** `isCall`: it was a tool's call that failed, in a session that was open. */
function mcpFailure(what: string, isCall: boolean, thrown: unknown): ToolResult {
  if (thrown instanceof McpStreamEnded) {
    const { cause } = thrown;
    const why = cause === undefined ? "its stream ended" : messageOf(rootCause(cause));
    return failed("connection", "MCP_STREAM_ENDED", `${what} got no answer: ${why}.`);
  }
  if (thrown instanceof McpError) {
    if (thrown.code === ErrorCode.ConnectionClosed) return requestFailure(what, thrown);
    const kind = thrown.code === ErrorCode.InternalError ? "server_error" : "client_error";
    return failed(kind, RPC_CODES[thrown.code] ?? `MCP_${thrown.code}`, `${what} was refused: ${thrown.message}`);
  }
  const status = statusOf(thrown);
  if (status !== undefined) return refusedByStatus(what, isCall, status, thrown);
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

function refusedByStatus(what: string, isCall: boolean, status: number, thrown: unknown): ToolResult {
  const about = { retryable: status === 429 || status >= 500, status, status_code: status };
  const said = messageOf(thrown).slice(0, 500);
  if (status === 403 && isCall) {
    const why = "permission denied for the tool-call permission";
    const next = "tools/list needs less: give the identity that calls the permission to call tools";
    return failed("auth", "HTTP_403", `${what} answered 403: ${why}. ${next}. The server said: ${said}`, about);
  }
  return failed(kindOfStatus(status), `HTTP_${status}`, `${what} answered ${status}: ${said}`, about);
}

/** The status of 400 or more that a request was answered with. */
function statusOf(error: unknown): number | undefined {
  if (error instanceof StreamableHTTPError || error instanceof SseError) {
    return error.code !== undefined && error.code >= 400 ? error.code : undefined;
  }
  // The SSE transport reports the status of a refused message only in this form.
  const match = error instanceof Error ? /^Error POSTing to endpoint \(HTTP ([45]\d\d)\)/.exec(error.message) : null;
  return match === null ? undefined : Number(match[1]);
}
