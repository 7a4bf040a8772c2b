import assert from "node:assert/strict";
import type { ExecutionState } from "../../../src/engine/state/state.ts";
import { type EventRecord, fromRecord } from "../../../src/schema/rules/event-record.ts";
import type { FlowEvent } from "../../../src/schema/words/event.ts";
import { isMarker } from "../../../src/services/orchestration/memory/load-execution.ts";
import { callerOf, type MadeRerun } from "../callers/reruns.ts";
import { programOf } from "../playbooks.ts";
import type { Simulation } from "../simulate.ts";
import { expectedOutcome, outcomeOf } from "./expected.ts";
import { rootsWithLoss } from "./losses.ts";

/** What must hold of executions that repeat others: `states` are the folds of all logs. */
export async function assertReruns(run: Simulation, states: ReadonlyMap<string, ExecutionState>): Promise<void> {
  for (const rerun of run.reruns) {
    const log = logOf(run, rerun.executionId);
    copiesAreOfTheLine(run, rerun, log);
    takenOverAsItWas(rerun, log, states);
    nothingRunsTwice(run, rerun, log);
    endedIterationsStay(run, rerun, log);
    certainStepsRan(run, rerun, log);
  }
  await endsAsItsOriginal(run, states);
}

function logOf({ tables: { store } }: Simulation, executionId: string): FlowEvent[] {
  return (store.events.get(executionId) ?? []).filter((record) => !isMarker(record)).map(fromRecord);
}

type Copy = Extract<FlowEvent, { type: "step.completed" | "step.failed" | "step.skipped" }>;

function copiesOf(log: readonly FlowEvent[]): Copy[] {
  return log.filter((event): event is Copy => "reused_from" in event && event.reused_from !== undefined);
}

/** Every copy names the event that it is a copy of, of an execution that its rerun comes from; and there are those of the plan. */
function copiesAreOfTheLine({ reruns, tables: { store } }: Simulation, rerun: MadeRerun, log: FlowEvent[]): void {
  const { plan, executionId } = rerun;
  const copies = copiesOf(log);
  const planned = (plan.steps ?? []).flatMap(({ step, action }) => (action === "reuse" ? [step] : []));
  assert.deepEqual(copies.map(({ step }) => step).sort(), planned.sort(), `Rerun ${executionId} reuses otherwise`);
  assert.equal(plan.reused, copies.length);
  const line = new Set(lineOf(reruns, rerun).map(({ originalId }) => originalId));
  for (const { step, type, reused_from: from } of copies) {
    assert.ok(
      from !== undefined && line.has(from.execution_id),
      `${step} is not taken from where ${executionId} comes`,
    );
    const named = store.events.get(from.execution_id)?.find(({ event_id }: EventRecord) => event_id === from.event_id);
    assert.deepEqual([named?.event_type, named?.["node_name"]], [type, step], `What ${step} of ${executionId} repeats`);
  }
}

/** The rerun, its original if that is one too, and so on. */
function lineOf(reruns: readonly MadeRerun[], rerun: MadeRerun): MadeRerun[] {
  const above = reruns.find(({ executionId }) => executionId === rerun.originalId);
  return above === undefined ? [rerun] : [rerun, ...lineOf(reruns, above)];
}

/** What is reused is as it was: its result, its error, how often it ran. */
function takenOverAsItWas(
  { executionId, originalId }: MadeRerun,
  log: FlowEvent[],
  states: ReadonlyMap<string, ExecutionState>,
): void {
  for (const { step } of copiesOf(log)) {
    const [before, now] = [states.get(originalId)?.steps[step], states.get(executionId)?.steps[step]];
    const facts = [before, now].map((one) => [one?.status, one?.result, one?.error, one?.runs]);
    assert.deepEqual(facts[1], facts[0], `${step} of ${executionId} is not as it was`);
  }
}

/** Only what the plan says runs: no command of a step that is reused, and no child of one, or where a child is reused. */
function nothingRunsTwice({ tables: { store } }: Simulation, rerun: MadeRerun, log: FlowEvent[]): void {
  const { plan, executionId, body } = rerun;
  const runs = new Set((plan.steps ?? []).flatMap(({ step, action }) => (action === "run" ? [step] : [])));
  for (const event of log) {
    if (event.type !== "command.issued" && event.type !== "loop.started") continue;
    assert.ok(runs.has(event.step), `${event.step} of rerun ${executionId} ran, and was to be reused`);
  }
  const children = [...store.executions.values()].filter((row) => row.parentExecutionId === executionId);
  for (const child of children) {
    const { step, caller } = callerOf(store, child.executionId);
    assert.ok(runs.has(step), `${step} of rerun ${executionId} called a playbook again`);
    assert.equal(body.reuse_children?.[caller], undefined, `${caller} of ${executionId} has another call's result`);
  }
}

/** An iteration of a loop that is gone on with does not run again once it had succeeded. */
function endedIterationsStay(run: Simulation, { originalId, executionId }: MadeRerun, log: FlowEvent[]): void {
  const restored = log.find((event) => event.type === "workflow.restored");
  // What a rerun of a rerun goes on with may be of the first original.
  const isOfRerun = run.reruns.some((one) => one.executionId === originalId);
  if (restored?.type !== "workflow.restored" || isOfRerun) return;
  const before = logOf(run, originalId);
  for (const [step, { loop }] of Object.entries(restored.steps)) {
    if (loop === undefined) continue;
    const last = before.findLastIndex((event) => event.type === "loop.started" && event.step === step);
    const succeeded = new Set(before.slice(last).flatMap((event) => successOf(event, step)));
    const again = log.flatMap((event) => successOf(event, step)).filter((iteration) => succeeded.has(iteration));
    assert.deepEqual(again, [], `Iterations of ${step} had ended before rerun ${executionId}`);
  }
}

function successOf(event: FlowEvent, step: string): number[] {
  return event.type === "loop.iteration.completed" && event.step === step ? [event.iteration] : [];
}

/** Where nothing fails, all runs that was said to run for certain. */
function certainStepsRan(run: Simulation, { executionId, plan }: MadeRerun, log: FlowEvent[]): void {
  if (run.interfered.has(executionId) || log.at(-1)?.type !== "playbook.completed") return;
  if (log.some((event) => event.type === "step.failed")) return;
  const ran = new Set(log.flatMap((event) => (isReached(event) ? [event.step] : [])));
  for (const step of plan.will_run) assert.ok(ran.has(step), `${step} of rerun ${executionId} did not run`);
}

/** It ran, or its own guard was asked. */
function isReached(event: FlowEvent): event is Extract<FlowEvent, { type: "step.completed" | "step.skipped" }> {
  if (event.type === "step.completed") return event.reused_from === undefined;
  return event.type === "step.skipped" && event.reused_from === undefined && event.reason === "when";
}

/** A rerun without changes, of a run without interference, ends as that did. */
async function endsAsItsOriginal(run: Simulation, states: ReadonlyMap<string, ExecutionState>): Promise<void> {
  const { playbook, reruns, tables, interfered } = run;
  const lost = rootsWithLoss(run);
  const isDisturbed = (executionId: string) => interfered.has(executionId) || lost.has(executionId);
  for (const rerun of reruns) {
    const line = lineOf(reruns, rerun);
    const fromStart = line.findIndex(({ body }) => body.from === "start");
    const counted = fromStart < 0 ? line : line.slice(0, fromStart + 1);
    if (counted.some(({ executionId, body }) => body.only || isDisturbed(executionId))) continue;
    if (fromStart < 0 && isDisturbed(line.at(-1)?.originalId ?? "")) continue;
    const state = states.get(rerun.executionId);
    assert.ok(state !== undefined);
    const outcome = outcomeOf(state, tables.payloads, playbook.isRacy);
    const what = `Rerun ${rerun.executionId} of ${rerun.originalId}, ${JSON.stringify(rerun.body)}, ended otherwise`;
    assert.deepEqual(outcome, await expectedOutcome(playbook), what);
    assert.equal(programOf(state.catalogId).path, playbook.path);
  }
}
