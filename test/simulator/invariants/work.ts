import assert from "node:assert/strict";
import { type EventRecord, fromRecord } from "../../../src/schema/rules/event-record.ts";
import { iterationSlots } from "../../../src/schema/rules/iteration-slots.ts";
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
  endedStaysEnded(run);
  resultsAreReported(run);
  noTimeIsWasted(run);
}

/** How long a command may wait for a worker that has room, and how long a worker that has just ended one counts as busy. */
const PATIENCE_MS = 1_500;
/** How often servers look for commands that they got no notice of, and how long this may take. */
const POLL_MS = 6_000;

/** Times of a command, milliseconds since 1970: from its issue, or from its last wake, to its end, or until it was parked. */
interface Life {
  execution: string;
  issued: number;
  claimed: number;
  ended: number;
  slots: number;
}

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
  const lives = new Map<string, Life>();
  /** What came before a command was parked. */
  const before: Life[] = [];
  for (const record of records(store.events)) {
    const { event_type, command_id, execution_id: execution, created_at } = record;
    const at = Date.parse(created_at);
    // What waited for the end of a pause begins to wait then.
    if (event_type === "execution.resumed") {
      for (const life of lives.values())
        if (life.execution === execution && life.claimed > at && life.issued < at) life.issued = at;
    }
    if (typeof command_id !== "string") continue;
    const life = lives.get(command_id) ?? {
      ...{ execution, issued: at, claimed: Number.POSITIVE_INFINITY, ended: at },
      slots: slotsOf(record),
    };
    lives.set(command_id, life);
    life.ended = at;
    if (event_type === "command.claimed") life.claimed = at;
    if (event_type === "command.woken") life.issued = at;
    if (event_type !== "command.parked") continue;
    before.push({ ...life });
    Object.assign(life, { issued: Number.POSITIVE_INFINITY, claimed: Number.POSITIVE_INFINITY });
  }
  for (const [commandId, { issued, claimed, ended }] of lives) {
    const at = issued + patienceMs;
    if (Math.min(claimed, ended) <= at) continue;
    const busy = [...before, ...lives.values()].filter((life) => life.claimed <= at && life.ended + PATIENCE_MS > at);
    const taken = busy.reduce((sum, life) => sum + life.slots, 0);
    assert.ok(taken >= slots, `Command ${commandId} waits, and ${taken} of ${slots} slots are taken`);
  }
}

/** What a command takes of its worker's capacity. */
function slotsOf(record: EventRecord): number {
  const event = fromRecord(record);
  if (event.type !== "command.issued" || !isShared(record, event)) return 1;
  const { from = 0, to = 0 } = event.iterations ?? {};
  return iterationSlots(to - from);
}

/** Several iterations that begin at once, other than those of `exec: local`. */
function isShared({ catalog_id }: EventRecord, { step, iterations }: EventOf<"command.issued">): boolean {
  const exec = programOf(catalog_id).program.steps.get(step)?.loop?.loop.exec;
  return exec !== "local" && iterations !== undefined && iterations.to - iterations.from > 1;
}

/** An iteration whose end is in the log is not run again when its command is claimed anew. */
function endedStaysEnded({ tables: { store }, ledger }: Simulation): void {
  const sharing = new Map<string, Set<number>>();
  for (const record of records(store.events)) {
    const event = fromRecord(record);
    if (event.type === "command.issued" && isShared(record, event)) sharing.set(event.command_id, new Set());
    if (event.type === "loop.iteration.completed" || event.type === "loop.iteration.failed")
      sharing.get(event.command_id)?.add(event.iteration);
    if (event.type !== "command.claimed") continue;
    const { command_id: id, attempt: claim } = event;
    for (const iteration of sharing.get(id) ?? []) {
      const effects: readonly { attempt: number }[] = ledger.effects.get(`${id}-${iteration}-0`) ?? [];
      const again = effects.filter(({ attempt }) => attempt >= claim);
      assert.deepEqual(again, [], `Iteration ${iteration} of ${id} had ended before claim ${claim}`);
    }
  }
}

/** 5: what was reported was done; nothing was done more often than its command was claimed; once where claimed once. */
function effectsAreCounted({ tables: { store }, ledger }: Simulation): void {
  assert.deepEqual(ledger.breaches, []);
  // A claim under which a command was parked has run its task too.
  const claims = new Map(commandStories(store).map(({ commandId, claims, parks }) => [commandId, claims + parks]));
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
    if (event.type !== "task.done" || hasNoEffects(record.catalog_id, event)) continue;
    // Its input could not be made: after a step that was skipped, what templates name may be missing.
    if (event.error?.code === "CANCELLED" || event.error?.kind === "template") continue;
    // The time of its step was over before it was done.
    if (event.error?.code === "TIMEOUT") continue;
    const effects = ledger.effects.get(event.task_run_id) ?? [];
    const isDone = effects.some(({ run, attempt }) => run === event.run && attempt === event.attempt);
    assert.ok(isDone, `${event.task_run_id} was reported and never done`);
  }
}

function* records(events: ReadonlyMap<string, EventRecord[]>): Generator<EventRecord> {
  for (const log of events.values()) for (const record of log) if (!isMarker(record)) yield record;
}

/** A sub-playbook is an execution of its own: its side effects are not this one's. A wait has none. */
function hasNoEffects(catalogId: string, { step, task }: EventOf<"task.done">): boolean {
  const tasks = programOf(catalogId).program.steps.get(step)?.tasks ?? [];
  return tasks.some(({ task: { label, kind } }) => label === task && (kind === "playbook" || kind === "wait"));
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
