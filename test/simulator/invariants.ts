import assert from "node:assert/strict";
import type { Program } from "../../src/engine/program.ts";
import { isTerminal } from "../../src/engine/state.ts";
import { ResultView } from "../../src/language/result-view.ts";
import type { EventType, FlowEvent } from "../../src/schema/event.ts";
import type { Json } from "../../src/schema/json.ts";
import { plainValue } from "../../src/worker/plain.ts";
import { assertSame, foldLog } from "./journal.ts";
import type { Simulation } from "./simulate.ts";

/** Checks what must hold after every run; the numbers are those of the list of invariants in the design. */
export function assertInvariants(run: Simulation): void {
  oneEnd(run);
  assertSame(run.server.state, foldLog(run.server.log));
  attemptsGrow(run.server.log);
  oneResultPerCommand(run);
  effectsAreCounted(run);
  storedIsReported(run);
  nothingIsLeft(run);
}

/** What a run came to, as far as it does not depend on which worker was how fast. */
export function outcomeOf({ server, payloads, playbook: { isRacy } }: Simulation): Json {
  const { state } = server;
  const references = { get: (ref: string) => payloads.get(ref) };
  const result = state.resultStep === null ? null : (state.steps[state.resultStep]?.result ?? null);
  const steps = Object.entries(state.steps).map(([name, { status, runs, loop, error }]): [string, Json] => [
    name,
    { status, runs, loop: loop as unknown as Json, error: error?.message ?? null },
  ]);
  return {
    status: state.status,
    error: state.error?.message ?? null,
    result: result === null ? null : plainValue(new ResultView(result, references)),
    vars: state.vars,
    steps: isRacy ? null : Object.fromEntries(steps),
  };
}

/** 1: exactly one event ends the run, and the run has ended. */
function oneEnd({ server }: Simulation): void {
  assert.ok(isTerminal(server.state.status));
  const ends = server.log.map(({ type }) => type).filter((type) => ENDS.has(type));
  assert.equal(ends.length, 1, `The run ended ${ends.length} times: ${ends}`);
}

const ENDS = new Set<EventType>(["playbook.completed", "playbook.failed", "execution.cancelled"]);

/** 4: claims of a command count up by one, and what is reported between them is of the last. */
function attemptsGrow(log: readonly FlowEvent[]): void {
  const attempts = new Map<string, number>();
  for (const event of log) {
    if (!("attempt" in event)) continue;
    const last = attempts.get(event.command_id) ?? 0;
    const expected = event.type === "command.claimed" ? last + 1 : last;
    assert.equal(event.attempt, expected, `${event.type} of command ${event.command_id} has attempt ${event.attempt}`);
    attempts.set(event.command_id, event.attempt);
  }
}

/** 3: every command that was issued ended exactly once, every step run and iteration too. */
function oneResultPerCommand({ server }: Simulation): void {
  const issued = new Set<string>();
  const ended: string[] = [];
  for (const event of server.log) {
    if (event.type === "command.issued") issued.add(event.command_id);
    if (isCommandEnd(event)) ended.push(event.command_id);
  }
  assert.deepEqual([...ended].sort(), [...issued].sort(), "Commands issued and commands ended differ");
  const iterations = server.log.filter(isIterationEnd).map((event) => `${event.command_id}/${event.iteration}`);
  assert.equal(new Set(iterations).size, iterations.length, "An iteration ended twice");
  const stepRuns = server.log.filter(isStepEnd).map((event) => event.step_run_id);
  assert.equal(new Set(stepRuns).size, stepRuns.length, "A step run ended twice");
}

type OneOf<T extends EventType> = Extract<FlowEvent, { type: T }>;

function isCommandEnd(event: FlowEvent): event is OneOf<"command.completed" | "command.failed" | "command.cancelled"> {
  return event.type === "command.completed" || event.type === "command.failed" || event.type === "command.cancelled";
}

function isIterationEnd(event: FlowEvent): event is OneOf<"loop.iteration.completed" | "loop.iteration.failed"> {
  return event.type === "loop.iteration.completed" || event.type === "loop.iteration.failed";
}

function isStepEnd(event: FlowEvent): event is OneOf<"step.completed" | "step.failed"> {
  return event.type === "step.completed" || event.type === "step.failed";
}

/** 5: what was reported was done; nothing was done more often than its command was claimed; once where claimed once. */
function effectsAreCounted({ server, ledger, isInterfered, playbook: { program } }: Simulation): void {
  assert.deepEqual(ledger.breaches, []);
  const claims = new Map([...server.rows].map(([id, { attempt }]) => [id, attempt]));
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
  if (isInterfered) return;
  for (const event of server.log) {
    if (event.type !== "task.done" || isChildCall(program, event)) continue;
    const effects = ledger.effects.get(event.task_run_id) ?? [];
    const isDone = effects.some(({ run, attempt }) => run === event.run && attempt === event.attempt);
    assert.ok(isDone, `${event.task_run_id} was reported and never done`);
  }
}

/** A sub-playbook is an execution of its own: its side effects are not this one's. */
function isChildCall(program: Program, { step, task }: OneOf<"task.done">): boolean {
  const tasks = program.steps.get(step)?.tasks ?? [];
  return tasks.some((other) => other.task.label === task && other.task.kind === "playbook");
}

/** What is stored is what was reported, and not what a worker stored that had lost its claim. */
function storedIsReported({ server, ledger, isInterfered }: Simulation): void {
  const reported = new Map<string, string>();
  for (const event of server.log) {
    const reference = event.type === "task.done" ? event.result?.ref : undefined;
    if (reference !== undefined) reported.set(reference.ref, reference.meta.sha256);
  }
  if (!isInterfered) assert.deepEqual(ledger.stored, reported, "Results were stored over by another claim");
}

/** 6 and 7: no open command, no step that runs or waits, no stored payload that nothing refers to. */
function nothingIsLeft({ server, payloads, isInterfered }: Simulation): void {
  const { state, rows, log } = server;
  assert.deepEqual(state.commands, {}, "A command is open after the end");
  assert.deepEqual([state.active, state.waiting], [[], []], "A step runs or waits after the end");
  assert.deepEqual(
    [...rows.values()].filter(({ status }) => status !== "ENDED").map(({ command }) => command.step),
    [],
    "A row of the command table is open after the end",
  );
  if (isInterfered || payloads.size === 0) return;
  const text = JSON.stringify(log);
  for (const ref of payloads.keys()) assert.ok(text.includes(ref), `Nothing refers to the stored ${ref}`);
}
