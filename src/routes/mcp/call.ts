import type { RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js";
import type { CallToolRequest, ServerNotification, ServerRequest } from "@modelcontextprotocol/sdk/types.js";
import { ERROR_STATUS, FlowError } from "../../schema/words/errors.ts";
import { JsonObjectValue } from "../../schema/words/wire.ts";
import type { AgentCaller, BegunCall } from "../../services/mcp/tool-calls.ts";
import type { Listening } from "../http/client-signal.ts";
import { type Recheck, whileAllowed } from "../http/recheck-access.ts";
import { check } from "../http/validate.ts";
import { callKey, type SteeringCaller, shownNow } from "./caller.ts";
import type { McpParts } from "./deps.ts";
import { createPace, progressNotice } from "./progress.ts";
import { endedAnswer, leftAnswer, refusedAnswer, type ToolAnswer } from "./results.ts";
import type { ResumePoint } from "./resume.ts";
import { callSteeringTool, isSteeringTool } from "./steering-tools.ts";

/** What surrounds a call: the request that it came with. */
export interface CallRoom extends Omit<SteeringCaller, "caller" | "key"> {
  session: string | undefined;
  /** Where the client can resume; absent if it cannot. */
  point: ResumePoint | undefined;
  listen(): Listening;
  /** For a user: see {@link shownNow}. */
  recheck?: Recheck | undefined;
  /** Ends the answer as it is. */
  leave(): Promise<void>;
}

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;

/**
 * `tools/call`: starts the agent's execution, reports progress if the client asked for it, and answers with its end. A client
 * that disconnects cancels nothing: it can cancel (`notifications/cancelled`), or resume later.
 */
export async function callTool(
  parts: McpParts,
  caller: AgentCaller,
  room: CallRoom,
  { params }: CallToolRequest,
  extra: Extra,
): Promise<ToolAnswer> {
  let call: BegunCall;
  try {
    const inputs = check(JsonObjectValue, params.arguments ?? {}, "The arguments");
    const key = room.session === undefined ? {} : { key: callKey(room.session, extra.requestId) };
    if (isSteeringTool(params.name))
      return await callSteeringTool(parts, { ...room, caller, ...key }, params.name, inputs);
    call = await parts.calls.begin(caller, { name: params.name, inputs, ...key });
  } catch (error) {
    const refusal = refusalOf(error, parts);
    if (refusal === undefined) throw error;
    return refusedAnswer(refusal);
  }
  const { signal, left, done } = room.listen();
  try {
    await tellProgress(parts, caller, call, room, extra, signal);
    const end = await parts.calls.end(call, signal);
    if (end !== undefined) return endedAnswer(await shownNow(room.recheck, caller, call), end);
    // No answer: a client that can resume requests the rest, here or at another server.
    if (left.aborted || room.point !== undefined) await room.leave();
    return leftAnswer(call);
  } finally {
    done();
  }
}

/**
 * Errors that the model can read and fix are results of the tool; an unknown tool and an internal error are errors of the
 * protocol.
 */
function refusalOf(error: unknown, { unavailable }: McpParts): FlowError | undefined {
  if (!(error instanceof FlowError)) return unavailable(error);
  return error.code === "NOT_FOUND" || ERROR_STATUS[error.code] === 500 ? undefined : error;
}

async function tellProgress(
  { calls }: McpParts,
  caller: AgentCaller,
  call: BegunCall,
  { point, recheck }: CallRoom,
  { _meta, sendNotification }: Extra,
  signal: AbortSignal,
): Promise<void> {
  const token = _meta?.progressToken;
  if (token === undefined || !call.isShown) return;
  const isDue = createPace();
  for await (const progress of whileAllowed(calls.follow(call, signal), recheck)) {
    if (progress === "idle" || !isDue() || !caller.may("view", call.path)) continue;
    if (point !== undefined) point.after = progress.eventId;
    await sendNotification(progressNotice(token, progress));
  }
}
