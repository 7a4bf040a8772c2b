import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  CallToolRequestSchema,
  CancelledNotificationSchema,
  isInitializeRequest,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import type { Context } from "hono";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { REASON_MAX } from "../../schema/api/executions.ts";
import { ERROR_STATUS, FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, own } from "../../schema/words/json.ts";
import { isStorable } from "../../schema/words/wire.ts";
import { audited } from "../../services/access/audit.ts";
import type { AgentCaller } from "../../services/mcp/tool-calls.ts";
import { callerOf } from "../http/audit-caller.ts";
import { listening } from "../http/client-signal.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { inPlace } from "../streams/sse.ts";
import { type CallRoom, callTool } from "./call.ts";
import { agentCaller, callKey } from "./caller.ts";
import type { McpParts } from "./deps.ts";
import { EXECUTION_TEMPLATE, readExecution } from "./resources.ts";
import { shownTool } from "./results.ts";
import { eventIdOf, type ResumePoint } from "./resume.ts";
import { steeringTools } from "./steering-tools.ts";

/** From this version of the protocol on clients go on with an answer that has broken off. */
const RESUMABLE_SINCE = "2025-11-25";

const INSTRUCTIONS =
  "Each tool is an agent of flow: a call runs its playbook as an execution and waits for its end. Answers and errors name the " +
  "execution; the resource flow://executions/{execution_id} shows what became of it. The tools flow___status, flow___explain, " +
  "flow___pause, flow___resume, flow___signal and flow___rerun are about executions.";

/** What a client has sent. */
export interface Incoming {
  session: string | undefined;
  newSession(): string;
  body: unknown;
  /** One of the messages calls a tool: the answer is a stream that lasts as long as the call. */
  callsTool: boolean;
}

/**
 * Answers the messages of one request: with a server of the protocol's library that lives as long as the answer takes.
 * Throws `FlowError` RATE_LIMITED where the caller has no place for another stream.
 */
export async function answerMessages(
  parts: McpParts,
  c: Context<RouteEnvironment>,
  incoming: Incoming,
): Promise<Response> {
  const giveBack = incoming.callsTool ? parts.streams.places.take(c) : () => undefined;
  try {
    return await answerInPlace(parts, c, incoming, giveBack);
  } catch (error) {
    giveBack();
    throw error;
  }
}

async function answerInPlace(
  parts: McpParts,
  c: Context<RouteEnvironment>,
  { session, newSession, body }: Incoming,
  giveBack: () => void,
): Promise<Response> {
  const caller = agentCaller(c);
  const point = session === undefined ? undefined : resumablePoint(c, body);
  const transport = new WebStandardStreamableHTTPServerTransport(
    point === undefined
      ? {}
      : {
          eventStore: {
            storeEvent: () => Promise.resolve(eventIdOf(point)),
            // Never called: `resumeCall` does that.
            replayEventsAfter: () => Promise.reject(new Error("nothing is stored")),
          },
        },
  );
  const server = createServer(parts, c, caller, {
    session,
    point,
    recheck: c.var.recheck,
    listen: () => listening(c, parts.stopping),
    ...steering(parts, c),
    leave: () => transport.close(),
  });
  await server.connect(transport as Transport);
  const response = await transport.handleRequest(c.req.raw, { parsedBody: body });
  // A new answer, with the headers that all answers here have.
  const headers = Object.fromEntries(response.headers);
  if (response.ok && isInitializeRequest(body)) headers["mcp-session-id"] = newSession();
  if (response.body !== null)
    return c.body(inPlace(c, response.body, giveBack), response.status as ContentfulStatusCode, headers);
  giveBack();
  return c.body(null, response.status as 202, headers);
}

/** The point at which the answer to a single call of a tool begins, for a client that can go on from it. */
function resumablePoint(c: Context, body: unknown): ResumePoint | undefined {
  if (!isJsonObject(body) || body["method"] !== "tools/call") return undefined;
  if ((c.req.header("mcp-protocol-version") ?? "") < RESUMABLE_SINCE) return undefined;
  const requestId = own(body, "id");
  const params = own(body, "params");
  const meta = isJsonObject(params) ? own(params, "_meta") : undefined;
  const token = isJsonObject(meta) ? own(meta, "progressToken") : undefined;
  if (!isId(requestId)) return undefined;
  return { requestId, after: 0, ...(isId(token) && { progressToken: token }) };
}

function isId(value: unknown): value is string | number {
  return typeof value === "string" || Number.isSafeInteger(value);
}

function createServer(parts: McpParts, c: Context<RouteEnvironment>, caller: AgentCaller, room: CallRoom): Server {
  const { tools, version } = parts;
  const server = new Server(
    { name: "flow", title: "flow", version },
    { capabilities: { tools: { listChanged: true }, resources: {} }, instructions: INSTRUCTIONS },
  );
  const guarded =
    <I extends unknown[], O>(handler: (...input: I) => Promise<O>) =>
    (...input: I): Promise<O> =>
      handler(...input).catch((error: unknown) => {
        throw reason(error, c, parts);
      });
  server.setRequestHandler(
    ListToolsRequestSchema,
    guarded(async ({ params }) => {
      const page = await tools.list(caller.callable(), params?.cursor);
      // On the first page: the others go on with the agents.
      const others = params?.cursor === undefined ? steeringTools(caller) : [];
      return {
        tools: [...others, ...page.tools.map(shownTool)],
        ...(page.nextCursor !== null && { nextCursor: page.nextCursor }),
      };
    }),
  );
  server.setRequestHandler(
    CallToolRequestSchema,
    guarded((request, extra) => callTool(parts, caller, room, request, extra)),
  );
  server.setNotificationHandler(
    CancelledNotificationSchema,
    guarded(async ({ params: { requestId, reason } }) => {
      // Without a session the id says nothing: every client counts from 0.
      if (requestId === undefined || room.session === undefined) return;
      await parts.calls.cancel(caller, callKey(room.session, requestId), reasonOf(reason), parts.stopping);
    }),
  );
  server.setRequestHandler(ListResourcesRequestSchema, () => ({ resources: [] }));
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({ resourceTemplates: [EXECUTION_TEMPLATE] }));
  server.setRequestHandler(
    ReadResourceRequestSchema,
    guarded(async ({ params: { uri } }) => ({ contents: [await readExecution(parts, caller, uri)] })),
  );
  return server;
}

/** As whom a caller steers executions. */
function steering(
  { audit }: Pick<McpParts, "audit">,
  c: Context<RouteEnvironment>,
): Pick<CallRoom, "by" | "record" | "row" | "recordSignal"> {
  const asked = () => callerOf(c, { access: "operator" });
  const row: CallRoom["row"] = (action, executionId, detail) =>
    audited(asked(), action, `execution/${executionId}`, { detail });
  const recordSignal: CallRoom["recordSignal"] = (name, detail) =>
    audit.record(audited(asked(), "signal.send", `signal/${name}`, { detail }));
  return {
    by: asked().actor ?? asked().actorKind,
    record: (action, executionId, detail) => audit.record(row(action, executionId, detail)),
    row,
    recordSignal,
  };
}

function reasonOf(text: string | undefined): string {
  const suffix = text === undefined || text === "" ? "" : `: ${text}`;
  const reason = `Cancelled by the MCP client${suffix}`.slice(0, REASON_MAX);
  return isStorable(reason) ? reason : "Cancelled by the MCP client";
}

/** JSON-RPC's codes. */
const INVALID_PARAMS = -32_602;
const INTERNAL_ERROR = -32_603;

/** The error for the client. The message of an error without a code may contain a statement: it stays in the log. */
export function reason(
  error: unknown,
  c: Context<RouteEnvironment>,
  { unavailable, logger }: Pick<McpParts, "unavailable" | "logger">,
): Error & { code: number } {
  const known = error instanceof FlowError ? error : unavailable(error);
  const status = known === undefined ? 500 : ERROR_STATUS[known.code];
  if (known !== undefined && status < 500) return rpcError(INVALID_PARAMS, known.message);
  if (known !== undefined && status === 503) return rpcError(INTERNAL_ERROR, known.message);
  const { requestId } = c.var;
  logger.error({ request_id: requestId, err: error }, "a message of an MCP client failed");
  return rpcError(
    INTERNAL_ERROR,
    `The server failed at this message; its log has the cause under request ${requestId}`,
  );
}

function rpcError(code: number, message: string): Error & { code: number } {
  return Object.assign(new Error(message), { code });
}
