import type { Context } from "hono";
import { formatTraceparent, parseTraceparent } from "../../platform/telemetry/trace-context.ts";
import { type ExecuteAnswer, ExecuteBody } from "../../schema/api/executions.ts";
import { EXECUTE_ROUTES } from "../../schema/routes/executions.ts";
import { notOfClaim } from "../../schema/rules/claim-refusals.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { ParentRef } from "../../schema/words/event.ts";
import type { ExecutionOutcome, Executions } from "../../services/executions/executions.ts";
import type { Started } from "../../services/executions/start-execution.ts";
import { claimedExecution } from "../http/claimed-execution.ts";
import { listening } from "../http/client-signal.ts";
import { bodySha256, idempotencyKey, keyOwner } from "../http/idempotency.ts";
import { BODY_BYTES_MAX, parseJson, readBody } from "../http/read-body.ts";
import { serve } from "../http/serve.ts";
import { check } from "../http/validate.ts";

/** Starting executions (interface specification, Execution). */
export function executeRoutes(executions: Pick<Executions, "start" | "outcome">, stopping: AbortSignal) {
  return serve(EXECUTE_ROUTES, {
    execute: {
      readsBody: async ({ maskedJson }, c) => {
        const bytes = await readBody(c.req.raw, BODY_BYTES_MAX);
        const body = check(ExecuteBody, parseJson(bytes), "The body");
        const parent = parentOf(body);
        if (c.get("role") === "worker" && parent === undefined) {
          throw new FlowError(
            "FORBIDDEN",
            "A worker starts executions only for one that it works on: send parent_execution_id",
          );
        }
        claimedExecution(c, parent?.execution_id);
        const { claim } = c.var;
        if (claim !== undefined && (parent?.step ?? claim.step) !== claim.step) {
          throw notOfClaim(claim, `step '${parent?.step ?? ""}' of its execution: it runs step '${claim.step}'`);
        }
        if (c.get("role") === "user" && parent !== undefined) {
          throw new FlowError("FORBIDDEN", "A user starts executions of their own: leave parent_execution_id out");
        }
        const {
          path,
          catalog_id,
          version,
          resource_kind,
          workload = {},
          labels,
          target,
          return_step,
          wait_ms = 0,
        } = body;
        const key = idempotencyKey(c);
        const trace = parseTraceparent(c.req.header("traceparent"));
        const user = c.get("user");
        const started = await executions.start({
          input: workload,
          bytes: bytes.length,
          permit: async (entryPath) => {
            await c.var.permit("execute", entryPath);
            // The answer will show the result.
            if (wait_ms > 0) await c.var.permit("view", entryPath);
          },
          may: (entryPath) => c.var.may("execute", entryPath),
          log: c.var.decisions,
          ...(user !== undefined && { startedBy: user.userId }),
          ...defined({ path, catalogId: catalog_id, labels }),
          ...(version !== undefined && version !== "latest" && { version: Number(version) }),
          ...defined({ resourceKind: resource_kind, target, returnStep: return_step, parent }),
          ...(trace !== undefined && { traceparent: formatTraceparent(trace) }),
          ...(key !== null && { idempotency: { caller: keyOwner(c), key, bodySha256: bodySha256(bytes) } }),
        });
        // What it looks at, and a start of one that an earlier call with this key has started.
        await c.var.decisions.settle({ executionId: started.executionId });
        const ended = wait_ms === 0 ? undefined : await untilEnd(c, executions, started, wait_ms, stopping);
        return maskedJson({
          ...startedAnswer(started),
          ...(ended !== undefined && { status: ended.status, result: ended.result, error: ended.error }),
        });
      },
    },
  });
}

/** The answer to a start. */
export function startedAnswer({
  executionId,
  status,
  path,
  version,
  catalogId,
  warnings,
  duplicate,
}: Started): ExecuteAnswer {
  return {
    execution_id: executionId,
    status,
    path,
    version,
    catalog_id: catalogId,
    ...(warnings.length > 0 && { warnings }),
    ...(duplicate && { duplicate: true as const }),
  };
}

/** Waits for the result: one request instead of two. */
async function untilEnd(
  c: Context,
  executions: Pick<Executions, "outcome">,
  { executionId, duplicate }: Pick<Started, "executionId" | "duplicate">,
  waitMs: number,
  stopping: AbortSignal,
): Promise<ExecutionOutcome | undefined> {
  const listener = listening(c, stopping);
  try {
    return await executions.outcome(executionId, { waitMs, isFresh: !duplicate }, listener.signal);
  } finally {
    listener.done();
  }
}

function parentOf({ parent_execution_id, parent_step, parent_iter }: ExecuteBody): ParentRef | undefined {
  if (parent_execution_id === undefined) return undefined;
  return {
    execution_id: parent_execution_id,
    ...defined({ step: parent_step, iter: parent_iter }),
  };
}
