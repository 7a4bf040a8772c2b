import { outOfTime, timeLimit } from "../../engine/decide/time-limit.ts";
import { openAccount } from "../../language/expression/parsing/budget.ts";
import type { AcceptedBatch } from "../../ports/execution-store.ts";
import { type EventRecord, fromRecord } from "../../schema/rules/event-record.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { FlowEvent } from "../../schema/words/event.ts";
import { isJsonObject } from "../../schema/words/json.ts";
import { failBatchJob, failExecution, inject, markerJob, processBatchJob, runJob } from "./jobs.ts";
import { withoutLost } from "./lost-commands.ts";
import type { UndecidedEvent } from "./memory/load-execution.ts";
import type { Recovery } from "./orchestrator.ts";
import type { OrchestratorParts } from "./parts.ts";
import { failBatch } from "./report.ts";
import { wakeDue } from "./wake.ts";

/** Rows read in one statement. */
const PAGE = 500;

/** The recovery of an orchestrator. */
export function createRecovery(parts: OrchestratorParts): Recovery {
  const { store, ready, refill, roundLoop, cache, now } = parts;
  return {
    async poll() {
      const returned = await store.returnedCommands(PAGE);
      const news = await withoutLost(
        parts,
        returned.filter(({ commandId }) => !ready.has(commandId)),
      );
      for (const command of news) ready.add({ ...command, readyAt: now() });
      const found = news.length + (await refill.poll());
      // Even for known commands: the reason that kept them from being claimed may have passed unnoticed.
      if (ready.size() > 0) {
        roundLoop.wake();
        for (const look of parts.labelled) look();
      }
      return found;
    },
    async recover(idleMs) {
      const batches = await store.unprocessedBatches(idleMs, PAGE);
      for (const batch of batches) await recoverBatch(parts, batch);
      return batches.length;
    },
    async expire() {
      const overdue = await store.overdueExecutions(PAGE);
      for (const executionId of overdue) {
        try {
          await expireExecution(parts, executionId);
        } catch (error) {
          if (error instanceof FlowError && error.code === "UNAVAILABLE") throw error;
          if (parts.unavailable(error) !== undefined) throw error;
          // An execution that cannot be ended must not keep the others open.
          parts.observer.fault(error, [executionId]);
        }
      }
      return overdue.length;
    },
    wake: () => wakeDue(parts),
    sweep: () => cache.sweep(roundLoop.isAwaited),
  };
}

/** The events are in the log and in every state loaded from it; only their consequences are missing. */
async function recoverBatch(parts: OrchestratorParts, batch: AcceptedBatch): Promise<void> {
  const { requestId, executionIds, eventIds } = batch;
  const { store, roundLoop } = parts;
  const wanted = new Set(eventIds);
  const events = new Map<string, UndecidedEvent[]>();
  const lastIds = new Map<string, number>();
  const first = Math.min(...eventIds) - 1;
  // A batch whose events were all late has no event ids.
  for (const executionId of eventIds.length === 0 ? [] : executionIds) {
    const records = await store.eventsAfter(executionId, first, Math.max(...eventIds) - first);
    const ofBatch = records.filter(({ event_id }) => wanted.has(event_id));
    events.set(
      executionId,
      ofBatch.map((record) => ({ event: fromRecord(record), eventId: record.event_id })),
    );
    lastIds.set(executionId, ofBatch.at(-1)?.event_id ?? 0);
  }
  const undecided = (executionId: string) => events.get(executionId) ?? [];
  const lastId = (executionId: string) => lastIds.get(executionId) ?? 0;
  try {
    const lost = await countLostDelivery(parts, batch);
    if (lost >= (parts.limits.deliveries ?? DELIVERIES_MAX)) return await poison(parts, requestId, executionIds, lost);
    await runJob(roundLoop, [...executionIds], (base) => processBatchJob(requestId, base, undecided, lastId));
    parts.underWay.delete(requestId);
  } catch (error) {
    failBatch(parts, { requestId, executionIds }, error);
  }
}

/** Deliveries of a batch that end with the death of their server before its execution is ended. */
const DELIVERIES_MAX = 3;

/**
 * How many servers have died while they processed a batch. The death is written to the log before the batch is tried again, so
 * that it counts whatever becomes of this process. A batch that a living process has begun and not finished is not counted. One that
 * its worker had sent before without an answer counts one death more: what is decided with the first delivery is in no log before.
 */
async function countLostDelivery(
  { store, roundLoop, cache, now, underWay }: OrchestratorParts,
  { requestId, executionIds, eventIds, isHeld = false }: AcceptedBatch,
): Promise<number> {
  const [executionId] = executionIds;
  const last = Math.max(...eventIds);
  if (executionId === undefined || eventIds.length === 0 || isHeld || underWay.has(requestId)) return 0;
  const later = await store.eventsAfter(executionId, last, PAGE);
  const lost = 1 + later.filter((record) => isLostDelivery(record, requestId)).length;
  const context = { request_id: requestId, delivery: lost, code: "POISONED" };
  cache.entry(executionId).markers.push({ type: "batch.failed", at: now(), context });
  await runJob(roundLoop, [executionId], markerJob);
  underWay.add(requestId);
  return lost;
}

function isLostDelivery({ event_type, result }: EventRecord, requestId: string): boolean {
  const context = isJsonObject(result) ? result["context"] : undefined;
  if (!isJsonObject(context) || context["request_id"] !== requestId) return false;
  return event_type === "batch.failed" || (event_type === "batch.accepted" && context["redelivered"] === true);
}

/** Ends the execution of a batch over which one server after the other died. The others go on. */
async function poison(
  parts: OrchestratorParts,
  requestId: string,
  executionIds: readonly string[],
  lost: number,
): Promise<void> {
  const message = `Its server stopped in the middle of it, ${lost} times`;
  await runJob(parts.roundLoop, [], (base) => failBatchJob({ requestId, code: "POISONED", message }, base));
  for (const id of executionIds) {
    await failExecution(parts, id, `event batch ${requestId}`, new Error(message), "POISONED");
  }
}

/** The limit is computed again for the message: the row has only the deadline. */
async function expireExecution(parts: OrchestratorParts, executionId: string): Promise<void> {
  const { roundLoop, cache, now, env, applyDeps } = parts;
  const cached = cache.entry(executionId);
  await cache.load(cached);
  const { live } = cached;
  if (live === null) return;
  const { references, decisions, state, source } = live;
  const { sealing } = decisions;
  const engineEnv = { now: now(), newId: () => String(applyDeps.newId()), references, env, sealing };
  const given = await references.evaluate(() =>
    timeLimit(source.program, state.workload, { ...engineEnv, account: openAccount() }),
  );
  const limitMs = given ?? now() - state.startedAt;
  const event: FlowEvent = { type: "workflow.failed", at: now(), error: outOfTime(state.path, limitMs) };
  await inject(roundLoop, executionId, event);
}
