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
 * Runs an agent's playbook and waits for its end as long as it takes, or until the signal aborts: then it runs on. Throws
 * `Problem` where it is not started.
 */
export async function callAgent(
  path: string,
  workload: JsonObject,
  headers: { "idempotency-key": string },
  onProgress: (progress: CallProgress) => void,
  signal: AbortSignal,
): Promise<AgentCall> {
  const body = { path, resource_kind: "agent" as const, workload: workload as never };
  const { execution_id: executionId } = await api("POST /api/execute", { body, headers, signal });
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
    return callOf(await ended(executionId, signal));
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

function callOf({ execution_id, status, result, error, duration_ms }: Execution): AgentCall {
  return { executionId: execution_id, status, result, error, took: duration_ms };
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
