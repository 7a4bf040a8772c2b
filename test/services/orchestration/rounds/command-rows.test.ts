import assert from "node:assert/strict";
import { test } from "node:test";
import { openDecisions } from "../../../../src/engine/sealing/decision-sealing.ts";
import { emptyState } from "../../../../src/engine/state/state.ts";
import { loadedReferences } from "../../../../src/language/template/loaded-references.ts";
import type { Command } from "../../../../src/schema/words/command.ts";
import type { EventOf, FlowEvent } from "../../../../src/schema/words/event.ts";
import { type ChangeSet, createChangeSet } from "../../../../src/services/orchestration/rounds/change-set.ts";
import { compile } from "../../../engine/support/playbook.ts";

// Which rows a round leaves of the commands that it touches.

const ID = "77";
const ref = { at: 1, command_id: ID, step: "a" };
const claimed = (attempt: number, worker = "w"): FlowEvent => ({ type: "command.claimed", ...ref, attempt, worker });
const completed = (attempt: number): FlowEvent => ({ type: "command.completed", ...ref, attempt, worker: "w" });
const cancelled = (worker?: string): FlowEvent => ({
  type: "command.cancelled",
  ...ref,
  reason: "x",
  ...(worker !== undefined && { worker }),
});
const error = { kind: "unknown", code: "X", message: "x", retryable: false } as const;
/** By the server, of a command that its workers lost. */
const lost = (attempt: number): FlowEvent => ({ type: "command.failed", ...ref, attempt, error });

/** A round with these events, after that of a command if it issues one. */
function roundOf(isIssued: boolean, ...events: FlowEvent[]): ChangeSet {
  const program = compile("workflow:\n  - step: a\n    tool: { kind: noop }\n");
  const results = { load: () => assert.fail("nothing is loaded") };
  const decisions = openDecisions(results);
  const live = {
    ...{ state: { ...emptyState(), executionId: "1" }, catalogId: "2", trustDomain: "t", lastEventId: 100 },
    ...{
      issued: new Map<string, number>(),
      marks: new Map(),
      tally: new Map(),
      eventsSinceSnapshot: 0,
      undecided: [],
      decisions,
    },
    attached: new Map(),
    ...{ source: { program, file: "p", path: "p", version: 1 }, references: loadedReferences(decisions.store) },
  };
  let last = 100;
  const changes: ChangeSet = createChangeSet(live, { newId: () => ++last, leaseMs: 5, poolOf: () => undefined });
  const context = { workload: {}, vars: {}, steps: {}, input: {} };
  const body: Command = {
    ...{ command_id: ID, execution_id: "1", catalog_id: "2", step: "a", step_run_id: "3", step_started_at: 1, context },
  };
  if (isIssued) {
    changes.event({ type: "command.issued", ...ref, step_run_id: "3" });
    changes.issue(body);
  }
  for (const event of events) changes.event(event);
  return changes;
}

/** The rows after a round with these events: of a command that it issues, or of one of an earlier round. */
function rowsOf(isIssued: boolean, ...events: FlowEvent[]) {
  const { issued, commands, ended } = roundOf(isIssued, ...events).change(() => null);
  const seen = (row: { status: string; attempt: number; worker: string | null }) => [
    row.status,
    row.attempt,
    row.worker,
  ];
  return { issued: issued.map(seen), commands: commands.map(seen), ended };
}

const NONE = { issued: [], commands: [], ended: [] };

test("a command that begins and ends in one round has no row, whatever its end", () => {
  for (const events of [[completed(0)], [claimed(1), completed(1)], [cancelled()], [lost(0)]]) {
    assert.deepEqual(rowsOf(true, ...events), NONE);
  }
});

test("one that begins and stays open has one", () => {
  assert.deepEqual(rowsOf(true), { ...NONE, issued: [["PENDING", 0, null]] });
  assert.deepEqual(rowsOf(true, claimed(1)), { ...NONE, issued: [["CLAIMED", 1, "w"]] });
  assert.deepEqual(rowsOf(false, claimed(2)), { ...NONE, commands: [["CLAIMED", 2, "w"]] });
});

test("the end of an earlier round's command takes its row away: reported by its first claim, or before any", () => {
  for (const event of [completed(1), cancelled(), lost(0)])
    assert.deepEqual(rowsOf(false, event), { ...NONE, ended: [ID] });
  assert.deepEqual(rowsOf(false, claimed(1), completed(1)), { ...NONE, ended: [ID] });
});

test("the row stays where a worker may still run the command: cancelled in its hands, lost, or claimed more than once", () => {
  const kept = (status: string, attempt: number) => ({ ...NONE, commands: [[status, attempt, null]] });
  assert.deepEqual(rowsOf(false, cancelled("w")), kept("CANCELLED", 0));
  assert.deepEqual(rowsOf(false, completed(2)), kept("COMPLETED", 2));
  assert.deepEqual(rowsOf(false, lost(1)), kept("FAILED", 2));
  assert.deepEqual(rowsOf(false, claimed(2, "v"), cancelled("v")), kept("CANCELLED", 2));
  assert.deepEqual(rowsOf(true, claimed(1), cancelled("w")), { ...NONE, issued: [["CANCELLED", 1, null]] });
});

test("a step that ends is told to those who count; one that a rerun takes over did not run, and is not", () => {
  const end: EventOf<"step.completed"> = {
    ...{ type: "step.completed", at: 5, step: "a", step_run_id: "3", set: [], next: [], duration_ms: 4 },
  };
  assert.deepEqual(roundOf(true, completed(1), end).steps, [
    { executionId: "1", step: "a", status: "COMPLETED", durationMs: 4 },
  ]);
  const kept = { order: 1, runs: 1, attempts: 1, started_at: 1, ended_at: 5, result: null, error: null, loop: null };
  const reused_from = { execution_id: "0", event_id: 9, created_at: new Date(5).toISOString() };
  assert.deepEqual(roundOf(false, { ...end, kept, reused_from }).steps, []);
});
