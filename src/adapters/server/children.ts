import type { ChildOutcome, ChildRequest, ChildRunner } from "../../ports/children.ts";
import { WAIT_MS_MAX } from "../../schema/api/executions.ts";
import type { AnswerOf } from "../../schema/routes/contract.ts";
import { EXECUTE_ROUTES, EXECUTION_ROUTES } from "../../schema/routes/executions.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, type JsonObject } from "../../schema/words/json.ts";
import type { TaskError } from "../../schema/words/outcome.ts";
import type { StoredResult } from "../../schema/words/result.ts";
import { inNameOf, type ServerConnection } from "./connection.ts";
import { callUntilAnswered, type RetryParts } from "./retry.ts";

/** Longest silence of a call that the server answers as soon as it can. */
const CALL_MS = 30_000;
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
  readonly work: { secret?: string };
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
  let waiting = 0;
  /* With more children than connections each waits for less, so that none has to wait long for its turn. */
  const waitMs = () => Math.max(SHORTEST_WAIT_MS, Math.floor(WAIT_MS_MAX * Math.min(1, parts.connections / waiting)));

  const outcome = async (
    connection: ServerConnection,
    executionId: string,
    step: string | undefined,
    signal: AbortSignal,
  ): Promise<ChildOutcome> => {
    waiting += 1;
    try {
      for (;;) {
        const answer = await callUntilAnswered({ ...parts, connection }, EXECUTION_ROUTES.result, {
          params: { execution_id: executionId },
          query: { wait_ms: waitMs(), sealed: "true", step },
          timeoutMs: WAIT_MS_MAX + CALL_MS,
          signal,
        });
        const ended = endOf(answer);
        if (ended !== undefined) return ended;
      }
    } finally {
      waiting -= 1;
    }
  };

  return {
    of: (claim) => ({
      async run(request, signal) {
        const { secret } = claim.work;
        const quick = { ...parts, connection: inNameOf(parts.calls, secret) };
        const { executionId, path } = await execute(quick, request, signal);
        if (request.async) return { executionId, path, status: "STARTED", result: null, error: null };
        try {
          return await outcome(inNameOf(parts.connection, secret), executionId, request.returnStep, signal);
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
  try {
    const { execution_id: executionId, path } = await callUntilAnswered(parts, EXECUTE_ROUTES.execute, {
      body: {
        path: request.path,
        catalog_id: request.catalogId,
        version: request.version,
        workload: input,
        parent_execution_id: parent.execution_id,
        parent_step: parent.step,
        parent_iter: parent.iter,
        return_step: request.returnStep,
      },
      idempotencyKey: request.key,
      ...defined({ traceparent: request.traceparent }),
      timeoutMs: CALL_MS,
      signal,
    });
    return { executionId, path };
  } catch (error) {
    signal.throwIfAborted();
    throw refusedStart(error, request);
  }
}

/** The server says what it refuses, but of an entry that is missing not which: a task's author needs its name. */
function refusedStart(error: unknown, { path, catalogId, version }: ChildRequest): unknown {
  const isMissing = error instanceof FlowError && error.code === "NOT_FOUND";
  if (!isMissing || !/catalog entry not found/.test(error.message)) return error;
  const what = `${path ?? `with catalog_id ${catalogId}`}${version === undefined ? "" : `@${version}`}`;
  const why = "no callable playbook is registered in the catalog under that name";
  return new FlowError(error.code, `There is no playbook '${what}': ${why}`, { cause: error });
}

const ENDS = ["COMPLETED", "FAILED", "CANCELLED"] as const;

/** What became of the child; undefined while it is open. */
function endOf({ execution_id, path, status, result, error }: AnswerOf<typeof EXECUTION_ROUTES.result>) {
  const end = ENDS.find((name) => name === status);
  if (end === undefined) return undefined;
  return {
    executionId: execution_id,
    path,
    status: end,
    // As the engine of the server keeps them.
    result: isJsonObject(result) ? (result as JsonObject as StoredResult) : null,
    error: error as TaskError | null,
  } satisfies ChildOutcome;
}

/** No task waits for it: the task ended with its time-out already, or with its execution, whose children the server ends. */
function cancel(parts: RetryParts, executionId: string, why: unknown): void {
  const reason = why instanceof FlowError ? why.message.slice(0, 1_000) : "the task that called it was stopped";
  const params = { execution_id: executionId };
  const limits = { timeoutMs: CALL_MS, signal: AbortSignal.timeout(CANCEL_MS) };
  callUntilAnswered(parts, EXECUTION_ROUTES.cancel, { params, body: { reason }, ...limits }).catch(() => undefined);
}
