import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { AccessAction, PathRule } from "../../schema/rules/access-rules.ts";
import { problemsBySchema } from "../../schema/rules/json-schema.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import type { ExecutionOutcome, Executions } from "../executions/executions.ts";
import type { ExecutionRequest } from "../executions/start-execution.ts";
import { type CallProgress, createCallProgress } from "./call-progress.ts";
import type { AgentTool } from "./tool.ts";
import type { AgentTools } from "./tool-list.ts";

/** Who calls tools. */
export interface AgentCaller {
  /** Identifies a caller: `operator`, or one value for each user. */
  id: string;
  /** The user in whose name executions run; absent for operators. */
  userId?: number;
  /** Throws `FlowError` FORBIDDEN. Whatever is done is asked for before. */
  permit(action: AccessAction, path: string): Promise<void>;
  /** What the audit log says about a start. */
  log: NonNullable<ExecutionRequest["log"]>;
  /** Writes what was permitted to the audit log: it is about this execution. */
  decided(executionId: string): Promise<void>;
  /** The same for what then did not come about. */
  failed(error: unknown): Promise<void>;
  /** The same as an answer, where a refusal is not audited. */
  may(action: AccessAction, path: string): boolean;
  /** The paths of agents that they may execute; undefined: all. */
  callable(): readonly PathRule[] | undefined;
}

/** A call of a tool. */
export interface ToolCallRequest {
  /** The tool's name. */
  name: string;
  inputs: JsonObject;
  /** The same for the same call of the same caller: a call that is sent again starts nothing anew. */
  key?: string;
}

/** A call whose execution was started. */
export interface BegunCall {
  executionId: string;
  path: string;
  /** Of the workflow, for the progress. */
  steps: number;
  /** May the caller see what the execution does and gives? To start it takes less. */
  isShown: boolean;
}

/** Progress, with the id of the event that it comes from. */
export interface EventProgress extends CallProgress {
  eventId: number;
}

/** Calls of agents as tools. All throw `FlowError` FORBIDDEN if the caller may not execute the agent's path. */
export interface AgentCalls {
  /**
   * Starts the agent's execution, and is done. Throws `FlowError` NOT_FOUND for a name that is no tool's, INVALID_INPUT for inputs
   * that the tool's schema refuses, and what a start throws.
   */
  begin(caller: AgentCaller, request: ToolCallRequest): Promise<BegunCall>;
  /**
   * Finds the call that the caller started under this key, on any server. This query may arrive before the call itself, so it
   * is repeated for some seconds, until `signal` is aborted; undefined if the call is not found.
   */
  find(caller: AgentCaller, key: string, signal: AbortSignal): Promise<BegunCall | undefined>;
  /** What happens in the execution of a call, to its end; `idle` about once a second when there was nothing. */
  follow(call: BegunCall, signal: AbortSignal): AsyncGenerator<EventProgress | "idle">;
  /** Waits for the end; undefined when `signal` was aborted before. */
  end(call: BegunCall, signal: AbortSignal): Promise<ExecutionOutcome | undefined>;
  /** Cancels the execution of a call, and what it has called. False when there is no such call, see {@link AgentCalls.find}. */
  cancel(caller: AgentCaller, key: string, reason: string, signal: AbortSignal): Promise<boolean>;
}

/** One wait for an end. A longer one would cost nothing, but notice a lost message later. */
const WAIT_MS = 30_000;
/** Waits between two looks for a call. */
const LOOKS_MS = [50, 200, 750, 2_000] as const;

/** What calls of agents need. */
interface AgentCallsDeps {
  tools: AgentTools;
  executions: Pick<Executions, "start" | "startedUnder" | "detail" | "follow" | "outcome" | "cancel">;
}

/** Calls over the executions of this server. */
export function createAgentCalls(deps: AgentCallsDeps): AgentCalls {
  const { executions } = deps;
  /** Calls that begin here: a lookup of one waits until it is written. */
  const beginning = new Map<string, Promise<unknown>>();
  const find = async (caller: AgentCaller, key: string, signal: AbortSignal) => {
    await beginning.get(`${caller.id} ${key}`)?.catch(() => undefined);
    let call = await lookFor(deps, caller, key);
    for (const ms of LOOKS_MS) {
      if (call !== undefined || signal.aborted) break;
      await sleep(ms, undefined, { signal }).catch(() => undefined);
      call = await lookFor(deps, caller, key);
    }
    return call;
  };
  return {
    async begin(caller, request) {
      const begun = startCall(deps, caller, request).catch(async (error: unknown) => {
        await caller.failed(error);
        throw error;
      });
      if (request.key === undefined) return await begun;
      const name = `${caller.id} ${request.key}`;
      beginning.set(name, begun);
      try {
        return await begun;
      } finally {
        beginning.delete(name);
      }
    },
    find,
    async *follow({ executionId, steps }, signal) {
      const progressOf = createCallProgress(steps);
      for await (const event of await executions.follow(executionId, { after: 0 }, signal)) {
        const progress = event === "idle" ? undefined : progressOf(event);
        if (event === "idle") yield "idle";
        else if (progress !== undefined) yield { ...progress, eventId: event.event_id };
      }
    },
    async end({ executionId }, signal) {
      while (!signal.aborted) {
        const outcome = await executions.outcome(executionId, { waitMs: WAIT_MS }, signal);
        if (outcome !== undefined) return outcome;
      }
      return undefined;
    },
    async cancel(caller, key, reason, signal) {
      const call = await find(caller, key, signal);
      if (call === undefined) return false;
      await executions.cancel(call.executionId, { reason, cascade: true });
      return true;
    },
  };
}

async function startCall(
  { tools, executions }: AgentCallsDeps,
  caller: AgentCaller,
  { name, inputs, key }: ToolCallRequest,
): Promise<BegunCall> {
  const tool = await allowedTool(tools, caller, name);
  checkInputs(tool, inputs);
  const bodySha256 = createHash("sha256")
    .update(JSON.stringify([name, inputs]))
    .digest("hex");
  const { executionId } = await executions.start({
    catalogId: tool.catalogId,
    resourceKind: "agent",
    input: inputs,
    log: caller.log,
    origin: { kind: "mcp" },
    ...defined({ startedBy: caller.userId }),
    ...(key !== undefined && { idempotency: { caller: `mcp:${caller.id}`, key, bodySha256 } }),
  });
  const shown = await isShown(caller, tool.path);
  await caller.decided(executionId);
  return { executionId, path: tool.path, steps: tool.steps, isShown: shown };
}

/** The call that the caller started under this key, if it is written already. */
async function lookFor(
  { executions }: AgentCallsDeps,
  caller: AgentCaller,
  key: string,
): Promise<BegunCall | undefined> {
  const executionId = await executions.startedUnder(`mcp:${caller.id}`, key);
  if (executionId === undefined) return undefined;
  const { row, steps } = await executions.detail(executionId);
  await caller.permit("execute", row.path);
  const shown = await isShown(caller, row.path);
  await caller.decided(executionId);
  return { executionId, path: row.path, steps: steps.length, isShown: shown };
}

/** Readers are recorded in the audit log. */
async function isShown(caller: AgentCaller, path: string): Promise<boolean> {
  if (!caller.may("view", path)) return false;
  await caller.permit("view", path);
  return true;
}

/** Check permission before lookup, so that a refused caller does not learn whether it exists. */
async function allowedTool(tools: AgentTools, caller: AgentCaller, name: string): Promise<AgentTool> {
  const path = await tools.pathOf(name);
  if (path === undefined) throw noTool(name);
  await caller.permit("execute", path);
  const tool = await tools.find(path);
  if (tool === undefined) throw noTool(name);
  return tool;
}

function noTool(name: string): FlowError {
  return new FlowError("NOT_FOUND", `There is no tool '${name.slice(0, 100)}'; tools/list lists them`);
}

function checkInputs({ name, isDeclared, inputSchema }: AgentTool, inputs: JsonObject): void {
  if (!isDeclared) return;
  const problems = problemsBySchema(inputSchema, inputs, "arguments");
  if (problems.length === 0) return;
  const message = `Nothing was started: the arguments of '${name}' are not valid: ${problems.join("; ")}`;
  throw new FlowError("INVALID_INPUT", message);
}
