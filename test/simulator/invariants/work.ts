import assert from "node:assert/strict";
import { type EventRecord, fromRecord } from "../../../src/schema/rules/event-record.ts";
import type { EventOf, FlowEvent } from "../../../src/schema/words/event.ts";
import { asManifest, isManifestRef } from "../../../src/schema/words/manifest.ts";
import type { ResultRef } from "../../../src/schema/words/result.ts";
import { isMarker } from "../../../src/services/orchestration/memory/load-execution.ts";
import type { FaultPlan } from "../faults.ts";
import { programOf } from "../playbooks.ts";
import { STEPS_SERVER } from "../server.ts";
import type { Simulation } from "../simulate.ts";
import { commandStories } from "./commands.ts";
import { rootsWithLoss } from "./losses.ts";

/** Checks what workers did and stored against what the log says of it. */
export function assertWork(run: Simulation): void {
  effectsAreCounted(run);
  resultsAreReported(run);
  noTimeIsWasted(run);
}

/** How long a command may wait for a worker that has room, and how long a worker that has just ended one counts as busy. */
const PATIENCE_MS = 1_500;
/** How often servers look for commands that they got no notice of, and how long this may take. */
const POLL_MS = 6_000;

/**
 * Where nothing broke, no command waits while a worker has room; where only notices were lost, it is found by polling. In the
 * end it would be found in any case, and the delay would not be noticed.
 */
function noTimeIsWasted({ tables: { store }, faults: { counts }, slots, interfered }: Simulation): void {
  // A worker learns of a cancellation with its next heartbeat.
  if (interfered.size > 0) return;
  const broken = (Object.keys(counts) as (keyof FaultPlan)[]).filter((kind) => counts[kind] > 0);
  if (broken.some((kind) => !kind.startsWith("notice"))) return;
  const patienceMs = broken.length === 0 ? PATIENCE_MS : PATIENCE_MS + POLL_MS;
  const lives = new Map<string, { issued: number; claimed: number; ended: number }>();
  for (const { event_type, command_id, created_at } of records(store.events)) {
    if (typeof command_id !== "string") continue;
    const at = Date.parse(created_at);
    const life = lives.get(command_id) ?? { issued: at, claimed: Number.POSITIVE_INFINITY, ended: at };
    lives.set(command_id, life);
    life.ended = at;
    if (event_type === "command.claimed") life.claimed = at;
  }
  for (const [commandId, { issued, claimed, ended }] of lives) {
    const at = issued + patienceMs;
    if (Math.min(claimed, ended) <= at) continue;
    const busy = [...lives.values()].filter((life) => life.claimed <= at && life.ended + PATIENCE_MS > at);
    assert.ok(busy.length >= slots, `Command ${commandId} waits, and ${busy.length} of ${slots} slots are taken`);
  }
}

/** 5: what was reported was done; nothing was done more often than its command was claimed; once where claimed once. */
function effectsAreCounted({ tables: { store }, ledger }: Simulation): void {
  assert.deepEqual(ledger.breaches, []);
  const claims = new Map(commandStories(store).map((story) => [story.commandId, story.claims]));
  for (const [taskRunId, effects] of ledger.effects) {
    const attempts = claims.get(taskRunId.split("-")[0] ?? "") ?? 0;
    const seen = new Set(effects.map(({ run, attempt }) => `${attempt}/${run}`));
    assert.equal(seen.size, effects.length, `${taskRunId} was done twice under one claim`);
    const byRun = new Map<number, number>();
    for (const { run } of effects) byRun.set(run, (byRun.get(run) ?? 0) + 1);
    for (const times of byRun.values()) {
      assert.ok(times <= attempts, `${taskRunId} was done ${times} times in ${attempts} attempts`);
    }
  }
  const ofServers = new Set<string>();
  for (const record of records(store.events)) {
    const event = fromRecord(record);
    if (event.type === "command.claimed" && event.worker === STEPS_SERVER) ofServers.add(event.command_id);
    if ("command_id" in event && ofServers.has(event.command_id)) continue;
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

function referencesOf(event: FlowEvent): ResultRef[] {
  if (event.type === "task.done") return event.result?.ref === undefined ? [] : [event.result.ref];
  const results = "results" in event ? (event.results ?? []) : [];
  return results.flatMap(([, { ref }]) => (ref === undefined ? [] : [ref]));
}

/** What is stored is what was reported, and not what a worker stored that had lost its claim; nothing else is left. */
function resultsAreReported(run: Simulation): void {
  const { interfered, ledger } = run;
  const { store, payloads } = run.tables;
  // What a worker stored before it was lost for the last time is not reported.
  if (interfered.size > 0 || rootsWithLoss(run).size > 0 || payloads.size === 0) return;
  const reported = new Map<string, string>();
  const events: FlowEvent[] = [...records(store.events)].map(fromRecord);
  for (const event of events) {
    for (const reference of referencesOf(event)) reported.set(reference.ref, reference.meta.sha256);
  }
  // The parts of a manifest may have been told inline before they were stored.
  const manifests = [...reported.keys()].filter(isManifestRef).map((ref) => payloads.get(ref) ?? null);
  for (const { ref } of manifests.flatMap((record) => asManifest(record)?.parts ?? [])) {
    if (!reported.has(ref)) reported.set(ref, ledger.stored.get(ref) ?? "");
  }
  assert.deepEqual(new Map(ledger.stored), reported, "Results were stored over by another claim");
  const text = JSON.stringify([events, manifests]);
  for (const ref of payloads.keys()) {
    // What a server gathered of a loop while another one was faster stays until its execution is deleted.
    if (!ref.includes("/task/loop/")) assert.ok(text.includes(ref), `Nothing refers to the stored ${ref}`);
  }
}
