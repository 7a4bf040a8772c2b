import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { evolve } from "../../../src/engine/state/evolve.ts";
import { resultOf } from "../../../src/engine/state/results.ts";
import { type ExecutionState, emptyState, isTerminal } from "../../../src/engine/state/state.ts";
import { boundedResult } from "../../../src/language/views/bounded-result.ts";
import { type EventRecord, fromRecord } from "../../../src/schema/rules/event-record.ts";
import { isMarker } from "../../../src/services/orchestration/memory/load-execution.ts";
import type { ExecutionRow } from "../../support/engine/memory-store.ts";
import type { FaultPlan } from "../faults.ts";
import type { Simulation } from "../simulate.ts";
import { assertApprovals } from "./approvals.ts";
import { commandStories, commandsAreInTheLog, nothingIsOpen } from "./commands.ts";
import { expectedOutcome, outcomeOf } from "./expected.ts";
import { assertLog } from "./log.ts";
import { lossesAreCounted, rootsWithLoss } from "./losses.ts";
import { assertReruns } from "./reruns.ts";
import { assertWork } from "./work.ts";

/** Checks what must hold after every run; the numbers are those of the list of invariants in the design. */
export async function assertInvariants(run: Simulation): Promise<void> {
  const { store } = run.tables;
  const states = new Map<string, ExecutionState>();
  for (const row of store.executions.values()) {
    const log = store.events.get(row.executionId) ?? [];
    idsGrow(row, log);
    const state = assertLog(log.filter((record) => !isMarker(record)).map(fromRecord));
    sameAsRow(row, state);
    states.set(row.executionId, state);
  }
  nothingIsOpen(run);
  await commandsAreInTheLog(run);
  lossesAreCounted(run);
  nothingIsClaimedTwice(run);
  batchesAreInTheLog(run);
  assertWork(run);
  assertApprovals(run);
  await sameInMemory(run);
  await asExpected(run, states);
  await assertReruns(run, states);
  await serversAreIdle(run);
}

/** 2: event ids of an execution only grow, also above its own id, and the row names the last one. */
function idsGrow({ executionId, lastEventId }: ExecutionRow, log: readonly EventRecord[]): void {
  let last = Number(executionId);
  for (const { event_id, event_type } of log) {
    assert.ok(event_id > last, `${event_type} has the id ${event_id} after ${last}`);
    last = event_id;
  }
  assert.equal(lastEventId, last, "The row is at another event than the log");
}

/** 1 and 2: the execution has ended, as its row says. */
function sameAsRow(row: ExecutionRow, state: ExecutionState): void {
  assert.ok(isTerminal(state.status), `By its log execution ${row.executionId} is ${state.status}`);
  assert.equal(row.status, state.status, "The row has another status than the fold of the log");
  assert.equal(row.progress === 100, state.status === "COMPLETED", `${row.status}, ${row.progress} %`);
  assert.ok(row.progress >= 0 && row.progress <= 100);
  const result = resultOf(state);
  if (state.status === "COMPLETED") {
    assert.deepEqual(row.result, result === null ? null : boundedResult(result), "The row has another result");
  }
  if (state.error !== null) assert.deepEqual(row.error, state.error, "The row has another error than the log");
}

/** Where no answer was lost and no process was out of reach, every claim reached its worker: nothing is claimed again. */
function nothingIsClaimedTwice({ tables: { store }, faults: { counts }, interfered }: Simulation): void {
  // A report that a cancellation overtook is refused, and with it what was claimed for its answer.
  if (interfered.size > 0) return;
  const kinds = Object.keys(counts) as (keyof typeof counts)[];
  if (kinds.some((kind) => counts[kind] > 0 && !HARMLESS.has(kind))) return;
  for (const { commandId, claims } of commandStories(store)) {
    assert.ok(claims <= 1, `Command ${commandId} was claimed ${claims} times, and for no reason`);
  }
}

const HARMLESS = new Set<keyof FaultPlan>([
  "storeBusy",
  "noticeLost",
  "noticeDoubled",
  "noticeDelayed",
  "noticeForged",
]);

/** 8: every acknowledged batch is in the log, each of its events once, and stands in the table as it was told. */
function batchesAreInTheLog({ tables: { store }, acknowledged }: Simulation): void {
  const counts = new Map<number, number>();
  for (const log of store.events.values()) {
    for (const { event_id } of log) counts.set(event_id, (counts.get(event_id) ?? 0) + 1);
  }
  const owners = new Map<number, string>();
  for (const { requestId, eventIds } of acknowledged) {
    const row = store.batches.get(requestId);
    assert.ok(row !== undefined, `Batch ${requestId} was acknowledged and is not there`);
    assert.deepEqual(row.accept.eventIds, eventIds, `Batch ${requestId} has other events than was said`);
  }
  for (const { requestId, accept, state } of store.batches.values()) {
    assert.equal(state, "completed", `Batch ${requestId} is ${state} after the end`);
    for (const id of accept.eventIds) {
      assert.equal(counts.get(id), 1, `Event ${id} of batch ${requestId} is ${counts.get(id) ?? 0} times in the log`);
      assert.ok(!owners.has(id), `Event ${id} is of batches ${owners.get(id)} and ${requestId}`);
      owners.set(id, requestId);
    }
  }
  const keys = [...store.batches.values()].map(({ accept }) => `${accept.caller}/${accept.idempotencyKey}`);
  assert.equal(new Set(keys).size, keys.length, "A key was written twice");
}

/** 2: what a server reads is the fold of the log, and what it has in memory is that up to where it knows the log. */
async function sameInMemory({ tables: { store }, servers }: Simulation): Promise<void> {
  for (const server of servers) {
    for (const [executionId, log] of store.events) {
      const { read, inMemory } = await server.look(executionId);
      assert.ok(read !== undefined, `A server does not find execution ${executionId}`);
      for (const view of inMemory === undefined ? [read] : [read, inMemory]) {
        const known = log.filter((record) => record.event_id <= view.lastEventId && !isMarker(record));
        const folded = known.map(fromRecord).reduce(evolve, emptyState());
        if (isDeepStrictEqual(view.state, folded)) continue;
        assert.deepEqual(view.state, folded, "A server's state differs from the log");
      }
    }
  }
}

/** Each undisturbed execution ends as it does in the local runtime. */
async function asExpected(run: Simulation, states: ReadonlyMap<string, ExecutionState>): Promise<void> {
  const { playbook, tables, started, interfered, reruns } = run;
  const roots = [...tables.store.executions.values()].filter((row) => row.parentExecutionId === null);
  assert.deepEqual(
    roots.map(({ executionId }) => executionId).sort(),
    [...started.values(), ...reruns.map(({ executionId }) => executionId)].sort(),
    "Started otherwise",
  );
  const lost = rootsWithLoss(run);
  for (const executionId of started.values()) {
    const state = states.get(executionId);
    if (state === undefined || interfered.has(executionId) || lost.has(executionId)) continue;
    const outcome = outcomeOf(state, tables.payloads, playbook.isRacy);
    assert.deepEqual(outcome, await expectedOutcome(playbook), "It ended otherwise than locally");
  }
}

/** 6: nothing waits in a server that is told to stop, and no caller waits for it. */
async function serversAreIdle({ servers }: Simulation): Promise<void> {
  for (const server of servers) await server.stop();
}
