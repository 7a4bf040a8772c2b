import type { ChildOutcome, ChildRequest, ChildRunner } from "../../ports/children.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../../schema/words/json.ts";
import type { TaskError } from "../../schema/words/outcome.ts";
import type { StoredResult } from "../../schema/words/result.ts";
import { refusal, type ServerConnection, type ServerReply } from "./connection.ts";
import { callUntilAnswered, type RetryParts } from "./retry.ts";

/** Longest silence of a call that the server answers as soon as it can. */
const CALL_MS = 30_000;
/** Longest wait of one request for a child's end: the longest that the server allows. */
const WAIT_MS = 30_000;
/** Shortest wait, however many wait. */
const SHORTEST_WAIT_MS = 1_000;
/** How long a cancellation is tried before the child is left to itself. */
const CANCEL_MS = 60_000;

/** What running children on the server needs. */
export interface ServerChildrenParts extends RetryParts {
  /** For calls that must not wait behind those that wait for children, which use `connection`. */
  calls: ServerConnection;
  /** Connections that wait for children; there may be more children than these. */
  connections: number;
}

/** The claim whose task calls a child. */
export interface CallingClaim {
  /** The claim is lost, or the worker stops: the command's next worker finds the same child and waits for it. */
  isGivenUp(): boolean;
}

/** Children as executions of the server. */
export interface ServerChildren {
  /** The runner for the commands of one claim. */
  of(claim: CallingClaim): ChildRunner;
}

/**
 * Runs sub-playbooks on the server: started once however often this is begun anew (`key`), waited for by long poll, cancelled
 * when the signal aborts and the claim is still ours.
 */
export function createServerChildren(parts: ServerChildrenParts): ServerChildren {
  const quick = { ...parts, connection: parts.calls };
  let waiting = 0;
  /** With more children than connections each waits for a shorter time, so that all get their turn soon. */
  const waitMs = () => Math.max(SHORTEST_WAIT_MS, Math.floor(WAIT_MS * Math.min(1, parts.connections / waiting)));

  const outcome = async (executionId: string, step: string | undefined, signal: AbortSignal): Promise<ChildOutcome> => {
    waiting += 1;
    try {
      for (;;) {
        const query = new URLSearchParams({
          wait_ms: String(waitMs()),
          sealed: "true",
          ...(step !== undefined && { step }),
        });
        const path = `/api/executions/${executionId}/result?${query}`;
        const reply = await callUntilAnswered(parts, { method: "GET", path, timeoutMs: WAIT_MS + CALL_MS, signal });
        const ended = endOf(reply);
        if (ended !== undefined) return ended;
      }
    } finally {
      waiting -= 1;
    }
  };

  return {
    of: (claim) => ({
      async run(request, signal) {
        const { executionId, path } = await execute(quick, request, signal);
        if (request.async) return { executionId, path, status: "STARTED", result: null, error: null };
        try {
          return await outcome(executionId, request.returnStep, signal);
        } catch (error) {
          if (signal.aborted && !claim.isGivenUp()) cancel(quick, executionId, signal.reason);
          throw error;
        }
      },
    }),
  };
}

async function execute(
  parts: RetryParts,
  request: ChildRequest,
  signal: AbortSignal,
): Promise<{ executionId: string; path: string }> {
  const { parent, input } = request;
  const body = {
    ...(request.path !== undefined && { path: request.path }),
    ...(request.catalogId !== undefined && { catalog_id: request.catalogId }),
    ...(request.version !== undefined && { version: request.version }),
    workload: input,
    parent_execution_id: parent.execution_id,
    parent_step: parent.step,
    ...(parent.iter !== undefined && { parent_iter: parent.iter }),
    ...(request.returnStep !== undefined && { return_step: request.returnStep }),
  };
  const reply = await callUntilAnswered(parts, {
    method: "POST",
    path: "/api/execute",
    body: JSON.stringify(body),
    idempotencyKey: request.key,
    ...(request.traceparent !== undefined && { traceparent: request.traceparent }),
    timeoutMs: CALL_MS,
    signal,
  });
  const answer = reply.status < 300 && isJsonObject(reply.body) ? reply.body : undefined;
  if (answer === undefined) throw refusedStart(reply, request);
  const executionId = own(answer, "execution_id");
  if (typeof executionId !== "string") throw notUnderstood("the start of a sub-playbook");
  return { executionId, path: String(own(answer, "path") ?? request.path ?? "") };
}

/** The server says what it refuses, but of an entry that is missing not which: a task's author needs its name. */
function refusedStart(reply: ServerReply, { path, catalogId, version }: ChildRequest): FlowError {
  const error = refusal(reply);
  if (error.code !== "NOT_FOUND" || !/catalog entry not found/.test(error.message)) return error;
  const what = `${path ?? `with catalog_id ${catalogId}`}${version === undefined ? "" : `@${version}`}`;
  const why = "no callable playbook is registered in the catalog under that name";
  return new FlowError(error.code, `There is no playbook '${what}': ${why}`, { cause: error });
}

const ENDS = ["COMPLETED", "FAILED", "CANCELLED"] as const;

/** What became of the child; undefined while it is open. */
function endOf(reply: ServerReply): ChildOutcome | undefined {
  if (reply.status !== 200) throw refusal(reply);
  const answer: JsonObject = isJsonObject(reply.body) ? reply.body : {};
  const executionId = own(answer, "execution_id");
  const status = own(answer, "status");
  if (typeof executionId !== "string" || typeof status !== "string") throw notUnderstood("the end of a sub-playbook");
  const end = ENDS.find((name) => name === status);
  if (end === undefined) return undefined;
  return {
    executionId,
    path: String(own(answer, "path") ?? ""),
    status: end,
    // As the engine of the server keeps them.
    result: objectOf(own(answer, "result")) as StoredResult | null,
    error: objectOf(own(answer, "error")) as TaskError | null,
  };
}

function objectOf(value: unknown): Json {
  return isJsonObject(value) ? value : null;
}

/** No task waits for it: the task ended with its time-out already, or with its execution, whose children the server ends. */
function cancel(parts: RetryParts, executionId: string, why: unknown): void {
  const reason = why instanceof FlowError ? why.message.slice(0, 1_000) : "the task that called it was stopped";
  const call = {
    method: "POST",
    path: `/api/executions/${executionId}/cancel`,
    body: JSON.stringify({ reason }),
    timeoutMs: CALL_MS,
    signal: AbortSignal.timeout(CANCEL_MS),
  } as const;
  callUntilAnswered(parts, call).catch(() => undefined);
}

function notUnderstood(what: string): FlowError {
  return new FlowError(
    "SERVER_UNREACHABLE",
    `The server did not answer as expected about ${what}; is it of this version?`,
  );
}
