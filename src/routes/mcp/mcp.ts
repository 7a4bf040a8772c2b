import { randomUUID } from "node:crypto";
import type { Context } from "hono";
import { MCP_ROUTES } from "../../schema/routes/mcp.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject } from "../../schema/words/json.ts";
import type { AgentCaller } from "../../services/mcp/tool-calls.ts";
import { refuseForeignPages } from "../http/loopback-only.ts";
import { BODY_BYTES_MAX, parseJson, readBody } from "../http/read-body.ts";
import { whileAllowed } from "../http/recheck-access.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { serve } from "../http/serve.ts";
import { eventStream } from "../streams/sse.ts";
import { agentCaller } from "./caller.ts";
import type { McpParts } from "./deps.ts";
import { resumeCall, resumePoint } from "./resume.ts";

/**
 * The server as an MCP server. It keeps no session state: a session's id is part of its calls' keys, so that any server of the
 * database finds the execution of a call that is cancelled or resumed.
 */
export function mcpRoutes(parts: McpParts) {
  // Loaded with the first message: the protocol's library takes a tenth of a second.
  const protocol = () => import("./protocol.ts");
  return serve(MCP_ROUTES, {
    post: async (_, c) => {
      refuseForeignPages(c);
      const session = sessionOf(c);
      if (session === null) return noSession(c);
      const body = await bodyOf(c);
      if (body instanceof FlowError) return rpcError(c, 400, -32_700, body.message);
      // What was decided is known of a request, and is written with the execution that it starts.
      const calls = [body].flat().filter(isToolCall).length;
      if (calls > 1) return rpcError(c, 400, -32_600, "A request calls one tool: send each call by itself");
      const { answerMessages } = await protocol();
      return await answerMessages(parts, c, { session, newSession: () => randomUUID(), body, callsTool: calls > 0 });
    },
    get: async (_, c) => {
      refuseForeignPages(c);
      const session = sessionOf(c);
      if (session === null) return noSession(c);
      if (!(c.req.header("accept") ?? "").includes("text/event-stream")) {
        return rpcError(c, 406, -32_000, "The answer is a text/event-stream: accept it");
      }
      const lastEventId = c.req.header("last-event-id");
      if (lastEventId !== undefined && lastEventId !== "") {
        const point = resumePoint(lastEventId);
        if (point === undefined || session === undefined) return rpcError(c, 400, -32_600, "No such Last-Event-ID");
        return await resumeCall(parts, c, agentCaller(c), session, point);
      }
      return await openNotices(parts, c);
    },
    delete: (_, c) => {
      refuseForeignPages(c);
      return sessionOf(c) === null ? noSession(c) : c.body(null, 200);
    },
  });
}

function isToolCall(message: unknown): boolean {
  return isJsonObject(message) && message["method"] === "tools/call";
}

/** The session that a message belongs to; undefined without one, null for an id that no server gives. */
function sessionOf(c: Context): string | undefined | null {
  const session = c.req.header("mcp-session-id");
  if (session === undefined) return undefined;
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(session) ? session : null;
}

/** 404 makes a client open a new session. */
function noSession(c: Context): Response {
  return rpcError(c, 404, -32_001, "There is no such session: initialize a new one");
}

/** The error for what cannot be read: invalid JSON, or nested too deep. Throws `FlowError` TOO_LARGE. */
async function bodyOf(c: Context): Promise<unknown> {
  try {
    return parseJson(await readBody(c.req.raw, BODY_BYTES_MAX));
  } catch (error) {
    if (error instanceof FlowError && error.code === "INVALID_INPUT") return error;
    throw error;
  }
}

function rpcError(c: Context, status: 400 | 404 | 406, code: number, message: string): Response {
  return c.json({ jsonrpc: "2.0", error: { code, message }, id: null }, status);
}

/** Server-initiated notifications: the caller's tool list has changed. */
async function openNotices(
  { agentChanges, streams }: Pick<McpParts, "agentChanges" | "streams">,
  c: Context<RouteEnvironment>,
): Promise<Response> {
  return await eventStream(
    c,
    streams,
    (signal) => {
      const changes = whileAllowed(agentChanges.follow(signal), c.var.recheck);
      return Promise.resolve(withRights(changes, agentCaller(c)));
    },
    () => ({ event: "message", data: { jsonrpc: "2.0", method: "notifications/tools/list_changed" } }),
  );
}

/** Tools change with what the caller may call, too. */
async function* withRights(
  changes: AsyncGenerator<"changed" | "idle">,
  caller: AgentCaller,
): AsyncGenerator<"changed" | "idle"> {
  let rights = JSON.stringify(caller.callable());
  for await (const change of changes) {
    const before = rights;
    rights = JSON.stringify(caller.callable());
    yield rights === before ? change : "changed";
  }
}
