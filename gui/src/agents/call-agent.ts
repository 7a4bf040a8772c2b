import { isJsonObject, type JsonObject } from "../../../src/schema/words/json.ts";
import { api } from "../api/client.ts";
import { follow } from "../api/live.ts";
import type { EventRecord, Execution } from "../api/types.ts";
import { isFinal } from "../parts/status.tsx";

/** How a call through an agent's playbook ended. */
export interface AgentCall {
  executionId: string;
  status: string;
  result: unknown;
  error: { code: string; message: string } | null;
  /** Milliseconds. */
  took: number | null;
  /** The messages between client and server, where the call kept them. */
  messages: readonly CallMessage[];
}

/** A JSON-RPC message of a call. */
export interface CallMessage {
  from: "client" | "server";
  after_ms: number;
  message: JsonObject;
}

/** Starts the execution of a call with these inputs. */
export type StartCall = (
  workload: JsonObject,
  headers: { "idempotency-key": string },
  signal: AbortSignal,
) => Promise<{ execution_id: string }>;

/** Starts an agent's playbook. */
export function agentStart(path: string): StartCall {
  return (workload, headers, signal) => {
    const body = { path, resource_kind: "agent" as const, workload: workload as never };
    return api("POST /api/execute", { body, headers, signal });
  };
}

/** Calls an MCP server of the catalog itself. */
export function serverStart(path: string): StartCall {
  return (workload, headers, signal) =>
    // The form's words are those of the call.
    api("POST /api/mcp/call", { body: { ...workload, resource: path } as never, headers, signal });
}

/** How far a call is. */
export interface CallProgress {
  executionId: string;
  /** A worker has claimed it. */
  isTaken: boolean;
  /** What happened last. */
  text: string;
}

/** How long one request waits for an execution's end, milliseconds. */
const WAIT_MS = 25_000;

/**
 * Makes a call and waits for its end as long as it takes, or until the signal aborts: then it runs on. Throws `Problem` where it is not
 * started.
 */
export async function callAgent(
  start: StartCall,
  workload: JsonObject,
  headers: { "idempotency-key": string },
  onProgress: (progress: CallProgress) => void,
  signal: AbortSignal,
): Promise<AgentCall> {
  const { execution_id: executionId } = await start(workload, headers, signal);
  let progress: CallProgress = { executionId, isTaken: false, text: "" };
  onProgress(progress);
  const watching = new AbortController();
  const onEvent = (_last: number, text: string) => {
    const event = JSON.parse(text) as EventRecord;
    const isTaken = progress.isTaken || event.event_type === "command.claimed" || event.event_type === "step.started";
    progress = { executionId, isTaken, text: progressText(event) || progress.text };
    onProgress(progress);
  };
  void follow(executionId, 0, { onEvent, onState: () => undefined }, AbortSignal.any([signal, watching.signal]));
  try {
    return await callOf(await ended(executionId, signal), signal);
  } finally {
    watching.abort();
  }
}

async function ended(executionId: string, signal: AbortSignal): Promise<Execution> {
  const path = { execution_id: executionId };
  for (;;) {
    const query = { wait_ms: String(WAIT_MS) };
    const { status } = await api("GET /api/executions/:execution_id/result", { params: path, query, signal });
    // The execution itself has the whole result, whatever it is stored as.
    if (isFinal(status)) return await api("GET /api/executions/:execution_id", { params: path, signal });
  }
}

async function callOf(execution: Execution, signal: AbortSignal): Promise<AgentCall> {
  const { execution_id: executionId, status, result, error, duration_ms: took } = execution;
  const data = status === "FAILED" ? await failedData(executionId, signal) : result;
  const messages = messagesOf(data);
  const shown = messages.length > 0 && isJsonObject(data) ? without(data, "messages") : result;
  return { executionId, status, result: shown, error, took, messages };
}

/** What the last task that failed gave all the same: a tool's own answer, and the messages. */
async function failedData(executionId: string, signal: AbortSignal): Promise<unknown> {
  const query = { event_type: "task.done", failed: "true" as const, order: "desc" as const, limit: "1" };
  const path = { execution_id: executionId };
  const { events } = await api("GET /api/executions/:execution_id/events", { params: path, query, signal });
  return holderOfMessages(events[0]);
}

/** The map that has messages: an event has its task's data somewhere within its result. */
function holderOfMessages(value: unknown, depth = 5): unknown {
  if (!isJsonObject(value) || depth === 0) return undefined;
  if (messagesOf(value).length > 0) return value;
  for (const inner of Object.values(value)) {
    const found = holderOfMessages(inner, depth - 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

function messagesOf(data: unknown): CallMessage[] {
  const list = isJsonObject(data) ? data["messages"] : undefined;
  const isMessage = (one: unknown) => isJsonObject(one) && isJsonObject(one["message"]) && "from" in one;
  return Array.isArray(list) && list.every(isMessage) ? (list as unknown as CallMessage[]) : [];
}

function without(data: JsonObject, key: string): JsonObject {
  const { [key]: _, ...rest } = data;
  return rest;
}

function progressText(event: EventRecord): string {
  const { event_type: type, node_name: step, meta } = event as EventRecord & Record<string, unknown>;
  const about = typeof step === "string" && step !== "" ? `${step}: ` : "";
  const numbers = isJsonObject(meta) ? meta["progress"] : undefined;
  if (!isJsonObject(numbers)) return about + type;
  return (
    about +
    Object.entries(numbers)
      .map(([name, value]) => `${name} ${String(value)}`)
      .join(", ")
  );
}
