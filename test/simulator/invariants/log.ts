import assert from "node:assert/strict";
import { evolve } from "../../../src/engine/state/evolve.ts";
import { type ExecutionState, emptyState } from "../../../src/engine/state/state.ts";
import type { EventType, FlowEvent } from "../../../src/schema/words/event.ts";

/** Checks what must hold in the log of an execution that has ended; gives its fold. */
export function assertLog(log: readonly FlowEvent[]): ExecutionState {
  oneEnd(log);
  attemptsGrow(log);
  oneResultPerCommand(log);
  oneEndPerWait(log);
  const state = emptyState();
  for (const event of log) {
    evolve(state, event);
    if (event.type === "command.issued") withinLimits(state, event.step);
  }
  assert.deepEqual(state.commands, {}, "A command is open after the end");
  assert.deepEqual([state.active, state.waiting], [[], []], "A step runs or waits after the end");
  return state;
}

/** 1: exactly one event ends the run. */
function oneEnd(log: readonly FlowEvent[]): void {
  const ends = log.map(({ type }) => type).filter((type) => ENDS.has(type));
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
function oneResultPerCommand(log: readonly FlowEvent[]): void {
  const issued: string[] = [];
  const ended: string[] = [];
  for (const event of log) {
    if (event.type === "command.issued") issued.push(event.command_id);
    if (isCommandEnd(event)) ended.push(event.command_id);
  }
  assert.equal(new Set(issued).size, issued.length, "A command was issued twice");
  assert.deepEqual(ended.sort(), issued.sort(), "Commands issued and commands ended differ");
  const iterations = log.filter(isIterationEnd).map((event) => `${event.command_id}/${event.iteration}`);
  assert.equal(new Set(iterations).size, iterations.length, "An iteration ended twice");
  const stepRuns = log.filter(isOwnStepEnd).map((event) => event.step_run_id);
  assert.equal(new Set(stepRuns).size, stepRuns.length, "A step run ended twice");
}

/** What a command waits for wakes it once: no wait that is over, or that never was, ends. */
function oneEndPerWait(log: readonly FlowEvent[]): void {
  const parked = new Set<string>();
  for (const event of log) {
    if (event.type === "command.parked") parked.add(event.command_id);
    if (event.type !== "command.woken") continue;
    assert.ok(parked.delete(event.command_id), `Command ${event.command_id} was woken, and did not wait`);
  }
}

/** 6: no loop has more iterations open than it allows; those of one command are its worker's to keep apart. */
function withinLimits(state: ExecutionState, name: string): void {
  const loop = state.steps[name]?.run?.loop;
  if (loop == null) return;
  const open = Object.values(state.commands).filter(
    ({ step, iterations }) => step === name && iterations !== null && iterations.endedBelow < iterations.to,
  );
  assert.ok(open.length <= loop.maxInFlight, `Step ${name}: ${open.length} open of ${loop.maxInFlight}`);
}

type OneOf<T extends EventType> = Extract<FlowEvent, { type: T }>;

function isCommandEnd(event: FlowEvent): event is OneOf<"command.completed" | "command.failed" | "command.cancelled"> {
  return event.type === "command.completed" || event.type === "command.failed" || event.type === "command.cancelled";
}

function isIterationEnd(event: FlowEvent): event is OneOf<"loop.iteration.completed" | "loop.iteration.failed"> {
  return event.type === "loop.iteration.completed" || event.type === "loop.iteration.failed";
}

/** A copy of another execution's end is of none of its runs. */
function isOwnStepEnd(event: FlowEvent): event is OneOf<"step.completed" | "step.failed"> {
  return (event.type === "step.completed" || event.type === "step.failed") && event.reused_from === undefined;
}
