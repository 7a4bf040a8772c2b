import assert from "node:assert/strict";
import type { EventOf, FlowEvent } from "../../src/schema/event.ts";
import { type EventRecord, fromRecord } from "../../src/schema/event-record.ts";
import { isJsonObject } from "../../src/schema/json.ts";
import { isMarker } from "../../src/services/live-execution.ts";
import { programOf } from "./playbooks.ts";
import type { Simulation } from "./simulate.ts";

/** Checks what workers did and stored against what the log says of it. */
export function assertWork(run: Simulation): void {
  effectsAreCounted(run);
  resultsAreReported(run);
  noTimeIsWasted(run);
}

/** What a claim, a report and a start may take together where nothing breaks, and what a retry may wait. */
const OVERHEAD_MS = { run: 5_000, command: 1_000, retry: 2_000 };

/**
 * A run in which nothing broke takes no longer than one worker would need that does one thing after another: commands that
 * nobody is told of are found in the end, and nobody would notice.
 */
function noTimeIsWasted({ tables: { store }, faults, lastedMs, interfered }: Simulation): void {
  if (Object.values(faults.counts).some((count) => count > 0) || interfered.size > 0) return;
  let most = OVERHEAD_MS.run;
  for (const { event_type, duration_ms, result } of records(store.events)) {
    if (event_type === "command.claimed") most += OVERHEAD_MS.command;
    if (event_type !== "task.done") continue;
    most += Number(duration_ms);
    const isFinal = isJsonObject(result) && isJsonObject(result["context"]) && result["context"]["final"] === true;
    if (!isFinal) most += OVERHEAD_MS.retry;
  }
  assert.ok(lastedMs <= most, `It lasted ${lastedMs} ms, and ${most} would have been enough for one worker alone`);
}

/** 5: what was reported was done; nothing was done more often than its command was claimed; once where claimed once. */
function effectsAreCounted({ tables: { store }, ledger }: Simulation): void {
  assert.deepEqual(ledger.breaches, []);
  for (const [taskRunId, effects] of ledger.effects) {
    const attempts = store.commands.get(taskRunId.split("-")[0] ?? "")?.attempt ?? 0;
    const seen = new Set(effects.map(({ run, attempt }) => `${attempt}/${run}`));
    assert.equal(seen.size, effects.length, `${taskRunId} was done twice under one claim`);
    const byRun = new Map<number, number>();
    for (const { run } of effects) byRun.set(run, (byRun.get(run) ?? 0) + 1);
    for (const times of byRun.values()) {
      assert.ok(times <= attempts, `${taskRunId} was done ${times} times in ${attempts} attempts`);
    }
  }
  for (const record of records(store.events)) {
    const event = fromRecord(record);
    if (event.type !== "task.done" || isChildCall(record.catalog_id, event) || event.error?.code === "CANCELLED")
      continue;
    const effects = ledger.effects.get(event.task_run_id) ?? [];
    const isDone = effects.some(({ run, attempt }) => run === event.run && attempt === event.attempt);
    assert.ok(isDone, `${event.task_run_id} was reported and never done`);
  }
}

function* records(events: ReadonlyMap<string, EventRecord[]>): Generator<EventRecord> {
  for (const log of events.values()) for (const record of log) if (!isMarker(record)) yield record;
}

/** A sub-playbook is an execution of its own: its side effects are not this one's. */
function isChildCall(catalogId: string, { step, task }: EventOf<"task.done">): boolean {
  const tasks = programOf(catalogId).program.steps.get(step)?.tasks ?? [];
  return tasks.some((other) => other.task.label === task && other.task.kind === "playbook");
}

/** What is stored is what was reported, and not what a worker stored that had lost its claim; nothing else is left. */
function resultsAreReported({ tables: { store, payloads }, ledger, interfered }: Simulation): void {
  if (interfered.size > 0 || payloads.size === 0) return;
  const reported = new Map<string, string>();
  const events: FlowEvent[] = [...records(store.events)].map(fromRecord);
  for (const event of events) {
    const reference = event.type === "task.done" ? event.result?.ref : undefined;
    if (reference !== undefined) reported.set(reference.ref, reference.meta.sha256);
  }
  assert.deepEqual(new Map(ledger.stored), reported, "Results were stored over by another claim");
  const text = JSON.stringify(events);
  for (const ref of payloads.keys()) {
    // What a server gathered of a loop while another one was faster stays until its execution is deleted.
    if (!ref.includes("/task/loop/")) assert.ok(text.includes(ref), `Nothing refers to the stored ${ref}`);
  }
}
