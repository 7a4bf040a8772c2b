import type { Context } from "hono";
import * as v from "valibot";
import { FlowError } from "../../schema/words/errors.ts";
import type { AgentCaller, BegunCall } from "../../services/mcp/tool-calls.ts";
import { type Recheck, whileAllowed } from "../http/recheck-access.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { eventStream, type ServerSentEvent } from "../streams/sse.ts";
import { callKey, shownNow } from "./caller.ts";
import type { McpParts } from "./deps.ts";
import { createPace, progressNotice } from "./progress.ts";
import { endedAnswer } from "./results.ts";

/** Where in the answer to a call a client is. */
export interface ResumePoint {
  requestId: string | number;
  /** Absent: it did not ask for progress. */
  progressToken?: string | number;
  /** The event whose progress the client got last; 0 at first. */
  after: number;
}

const Id = v.union([v.pipe(v.string(), v.maxLength(1_024)), v.pipe(v.number(), v.safeInteger())]);
const Point = v.strictTuple([Id, v.nullable(Id), v.pipe(v.number(), v.safeInteger(), v.minValue(0))]);

/** The point as the id of an event. It holds all that it takes to go on: no server remembers anything. */
export function eventIdOf({ requestId, progressToken, after }: ResumePoint): string {
  return Buffer.from(JSON.stringify([requestId, progressToken ?? null, after])).toString("base64url");
}

/** The point of an event's id; undefined for an id that is not ours. */
export function resumePoint(eventId: string): ResumePoint | undefined {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(eventId, "base64url").toString("utf8"));
  } catch {
    return undefined;
  }
  const parsed = v.safeParse(Point, value);
  if (!parsed.success) return undefined;
  const [requestId, progressToken, after] = parsed.output;
  return { requestId, after, ...(progressToken !== null && { progressToken }) };
}

/**
 * The rest of the answer to a call, for a client whose connection broke off, or that now reaches another server. A call that was
 * never begun, or that the caller may not make any more, is answered so: a client waits for nothing but an answer.
 */
export async function resumeCall(
  parts: McpParts,
  c: Context<RouteEnvironment>,
  caller: AgentCaller,
  session: string,
  point: ResumePoint,
): Promise<Response> {
  return await eventStream(
    c,
    parts.streams,
    (signal) => Promise.resolve(messages(parts, { caller, recheck: c.var.recheck }, { session, point }, signal)),
    (event): ServerSentEvent => event,
  );
}

async function* messages(
  { calls }: McpParts,
  { caller, recheck }: { caller: AgentCaller; recheck: Recheck | undefined },
  { session, point }: { session: string; point: ResumePoint },
  signal: AbortSignal,
): AsyncGenerator<ServerSentEvent | "idle"> {
  const { requestId, progressToken } = point;
  const answer = (body: object) => ({ event: "message", data: { jsonrpc: "2.0", id: requestId, ...body } });
  const call = await found(calls, caller, callKey(session, requestId), signal);
  if (call instanceof FlowError) {
    yield answer({ error: { code: INVALID_PARAMS, message: call.message } });
    return;
  }
  if (call === undefined) return;
  const isDue = createPace();
  const isShown = () => call.isShown && caller.may("view", call.path);
  for await (const progress of whileAllowed(calls.follow(call, signal), recheck)) {
    if (progress === "idle") yield "idle";
    else if (progressToken !== undefined && progress.eventId > point.after && isShown() && isDue()) {
      const id = eventIdOf({ ...point, after: progress.eventId });
      yield { event: "message", id, data: { jsonrpc: "2.0", ...progressNotice(progressToken, progress) } };
    }
  }
  const end = await calls.end(call, signal);
  if (end !== undefined) yield answer({ result: endedAnswer(await shownNow(recheck, caller, call), end) });
}

/** JSON-RPC's code for a call that cannot be. */
const INVALID_PARAMS = -32_602;

/** Undefined when `signal` was aborted. */
async function found(
  calls: McpParts["calls"],
  caller: AgentCaller,
  key: string,
  signal: AbortSignal,
): Promise<BegunCall | FlowError | undefined> {
  try {
    const call = await calls.find(caller, key, signal);
    if (call !== undefined || signal.aborted) return call;
    return new FlowError("NOT_FOUND", "The call was never begun: nothing was started. Make it again");
  } catch (error) {
    if (error instanceof FlowError && error.code === "FORBIDDEN") return error;
    throw error;
  }
}
