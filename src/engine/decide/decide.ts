import type { Command } from "../../schema/words/command.ts";
import type { EventOf, FlowEvent } from "../../schema/words/event.ts";
import type { TaskError } from "../../schema/words/outcome.ts";
import type { EngineEnv } from "../env.ts";
import type { Program, ProgramStep } from "../program/program.ts";
import { endedCount, loopResult } from "../state/evolve-loop.ts";
import { openIterations } from "../state/evolve-override.ts";
import { cancelledError } from "../state/results.ts";
import {
  type ExecutionState,
  isTerminal,
  knownStep,
  type LoopState,
  type OpenCommand,
  type Override,
  stepState,
} from "../state/state.ts";
import { startReady, startStep } from "./activate.ts";
import { afterApproval, approvalsAtResumption, closedApproval, expireApproval, openApproval } from "./approvals.ts";
import { endStep, skippedBy } from "./boundary.ts";
import { stepCommand } from "./issued-command.ts";
import { continueLoop, loopError, type StoreWrite } from "./loop.ts";
import { wakeAtResumption, wakeByKept, wakeBySignal } from "./match-signals.ts";

/** The consequences of an event. */
export interface Decision {
  events: FlowEvent[];
  commands: Command[];
  /** Payloads to store before the events are committed. */
  writes: StoreWrite[];
  /** More follows from the same event: fold this, and decide it again. */
  isPart?: true;
}

/**
 * Decides the consequences of an event. Deterministic and without side effects: the same state, event, program and environment
 * give the same decision. `state` already contains the event. Decisions depend on the state more than on the event, so that
 * deciding twice on one state issues nothing twice.
 *
 * Throws `ReferenceNeeded` if a template reads a payload that is not loaded: load it and decide again.
 */
export function decide(state: ExecutionState, event: FlowEvent, program: Program, env: EngineEnv): Decision {
  if (state.status === "PAUSED" && !ALSO_PAUSED.has(event.type)) return NOTHING;
  switch (event.type) {
    case "playbook.initialized":
      // Of a rerun from a step the log says where it goes on.
      if (event.rerun !== undefined && event.rerun.from !== "start") return NOTHING;
      return eventsOnly([{ type: "workflow.initialized", at: env.now, step: program.playbook.entryStep }]);
    case "workflow.initialized":
    case "workflow.restored":
      return proceed(state, program, env);
    case "command.issued":
      return issueCommand(state, event, program, env);
    case "command.completed":
    case "command.failed":
      return afterCommand(state, event.step, program, env);
    case "loop.started":
    case "loop.iteration.completed":
    case "loop.iteration.failed":
    case "loop.results.stored":
    case "loop.results.kept":
      return afterLoopEvent(state, event.step, program, env);
    case "loop.done":
      return afterLoop(state, event, program, env);
    case "step.completed":
    case "step.failed":
    case "step.skipped":
      return event.kept === undefined ? afterStep(state, event, program, env) : NOTHING;
    case "workflow.completed":
      return eventsOnly([completed(state, program, env)]);
    case "workflow.failed":
      return eventsOnly([
        ...stopEverything(state, event.error, env),
        { ...event, type: "playbook.failed", at: env.now },
      ]);
    case "execution.cancelled":
      return eventsOnly(stopEverything(state, cancelledError(event.reason), env));
    case "execution.resumed":
      return catchUp(state, program, env);
    case "step.overridden":
      return afterOverride(state, event, program, env);
    case "signal.received":
      return eventsOnly(wakeBySignal(state, event, program, env));
    case "command.parked":
      if (event.wait.kind === "approval") return eventsOnly(openApproval(state, event, env));
      return event.wait.kind === "signal" ? eventsOnly(wakeByKept(state, event.command_id, program, env)) : NOTHING;
    case "command.woken":
      return eventsOnly(expireApproval(state, event, env));
    case "approval.opened":
    case "approval.decided":
    case "approval.reminded":
    case "approval.escalated":
      return eventsOnly(afterApproval(state, event, program, env));
    case "approval.notified":
    case "approval.closed":
    case "execution.paused":
    case "command.claimed":
    case "command.started":
    case "command.cancelled":
    case "task.progress":
    case "task.done":
    case "call.done":
    case "call.error":
    case "next.evaluated":
    case "playbook.completed":
    case "playbook.failed":
      return NOTHING;
  }
}

/** What is decided during a pause too: the end at a time limit, and that the commands of what a person ends are stopped. */
const ALSO_PAUSED: ReadonlySet<FlowEvent["type"]> = new Set(["workflow.failed", "step.overridden"]);

const NOTHING: Decision = { events: [], commands: [], writes: [] };

function eventsOnly(events: FlowEvent[]): Decision {
  return { events, commands: [], writes: [] };
}

/** The command of a plain step. Commands of loops are made where their iterations are chosen. */
function issueCommand(
  state: ExecutionState,
  event: EventOf<"command.issued">,
  program: Program,
  env: EngineEnv,
): Decision {
  const run = knownStep(state, event.step)?.run;
  const step = program.steps.get(event.step);
  const isLoop = event.iterations !== undefined || event.claim === true;
  if (run == null || step === undefined || isLoop) return proceed(state, program, env);
  const command = stepCommand(state, step, run, event.command_id);
  return { ...proceed(state, program, env), commands: [command] };
}

function afterCommand(state: ExecutionState, name: string, program: Program, env: EngineEnv): Decision {
  const step = program.steps.get(name);
  const known = knownStep(state, name);
  if (step === undefined || known?.run == null) return NOTHING;
  const { run } = known;
  if (run.loop !== null) return continueLoop(state, step, run, env);
  if (run.ended === null) return NOTHING;
  const { stepRunId, input, given, override } = run;
  const result = override?.action === "skip" ? null : known.result;
  const end = { step, stepRunId, input, given, result, startedAt: known.startedAt ?? env.now, ...skippedBy(override) };
  return eventsOnly(endStep(state, program, { ...end, error: withStep(run.ended.error, name) }, env));
}

/** The commands of what a person has ended are cancelled, and what follows from its end is decided then; during a pause by the resumption. */
function afterOverride(
  state: ExecutionState,
  { step, reason }: EventOf<"step.overridden">,
  program: Program,
  env: EngineEnv,
): Decision {
  const run = knownStep(state, step)?.run;
  if (run == null) return NOTHING;
  const isOver = run.override !== undefined;
  const stopped = Object.entries(state.commands).filter(
    ([, command]) =>
      command.step === step && (isOver || (command.iterations !== null && openIterations(command).length === 0)),
  );
  if (stopped.length > 0) {
    return { ...eventsOnly(stopped.flatMap(([id, command]) => cancelled(id, command, reason, env))), isPart: true };
  }
  return state.status === "PAUSED" ? NOTHING : afterCommand(state, step, program, env);
}

/**
 * What was left undecided during a pause, one step after the other: the state says which steps have ended and which loops have room.
 * Steps that wait for them are started by their ends, as ever.
 */
function catchUp(state: ExecutionState, program: Program, env: EngineEnv): Decision {
  for (const name of state.active) {
    const decision = afterCommand(state, name, program, env);
    if (decision.events.length > 0) return { ...decision, isPart: true };
  }
  const woken = wakeAtResumption(state, program, env);
  const next = woken.length > 0 ? woken : approvalsAtResumption(state, env);
  return next.length > 0 ? { ...eventsOnly(next), isPart: true } : NOTHING;
}

function withStep(error: TaskError | null, step: string): TaskError | null {
  return error === null ? null : { ...error, step };
}

function afterLoopEvent(state: ExecutionState, name: string, program: Program, env: EngineEnv): Decision {
  const step = program.steps.get(name);
  const run = knownStep(state, name)?.run;
  if (step === undefined || run == null) return NOTHING;
  const next = continueLoop(state, step, run, env);
  // A loop that has just started may leave other waiting steps free to start as well.
  return next.events.length > 0 ? next : proceed(state, program, env);
}

function afterLoop(state: ExecutionState, event: EventOf<"loop.done">, program: Program, env: EngineEnv): Decision {
  const step = program.steps.get(event.step);
  const known = knownStep(state, event.step);
  const loop = known?.run?.loop;
  if (step === undefined || known?.run == null || loop == null) return NOTHING;
  const { stepRunId, input, given, override } = known.run;
  const error = withStep(endOfLoop(state, step, loop, override), event.step);
  const isSkipped = override?.action === "skip";
  const result = isSkipped ? null : loopResult(loop, error === null ? "completed" : "failed");
  const startedAt = known.startedAt ?? env.now;
  const end = { step, stepRunId, input, given, result, startedAt, error, ...skippedBy(override) };
  return eventsOnly(endStep(state, program, end, env));
}

/** The error with which a loop ends its step: that of a person where one has ended it, whatever its iterations did. */
function endOfLoop(
  state: ExecutionState,
  step: ProgramStep,
  loop: LoopState,
  override: Override | undefined,
): TaskError | null {
  if (override !== undefined) return override.error ?? null;
  const isCut = state.failure !== null && endedCount(loop) < (loop.total ?? Number.POSITIVE_INFINITY);
  const cut = isCut ? cancelledError(`Step '${step.step.name}' was not finished: the execution is failing`) : null;
  return loopError(step, loop) ?? cut;
}

function afterStep(
  state: ExecutionState,
  event: EventOf<"step.completed"> | EventOf<"step.failed"> | EventOf<"step.skipped">,
  program: Program,
  env: EngineEnv,
): Decision {
  // Skips and starts were decided together with the step's end.
  if (event.type === "step.skipped" && event.reason === "unreached") return NOTHING;
  const step = program.steps.get(event.step);
  const skipped = step === undefined ? [] : unreachedSteps(state, program, step, env);
  const next = proceed(state, program, env);
  return { ...next, events: [...skipped, ...next.events] };
}

/** Starts every step that may start. If no work is left, runs the final step and then ends the run. */
function proceed(state: ExecutionState, program: Program, env: EngineEnv): Decision {
  // A resumption ends several steps before what follows from the first of them is decided: the last of them has led to the end.
  if (isTerminal(state.status) || state.ending === true) return NOTHING;
  const started = startReady(state, program, env);
  if (started.length > 0) return eventsOnly(started);
  if (state.active.length > 0 || state.waiting.length > 0) return NOTHING;
  if (state.failure !== null) return eventsOnly([{ type: "workflow.failed", at: env.now, error: state.failure }]);
  const final = finalStep(state, program);
  if (final !== undefined) {
    return eventsOnly(startStep(state, program, final, { input: {}, from: state.lastCompleted }, env));
  }
  const error = state.failureAtEnd;
  if (error !== null) return eventsOnly([{ type: "workflow.failed", at: env.now, error }]);
  return eventsOnly([{ type: "workflow.completed", at: env.now }]);
}

/** The run's result: that of the final step or of `end` if one of them ran, else of the step that completed last. */
function completed(state: ExecutionState, program: Program, env: EngineEnv): FlowEvent {
  const named = [program.playbook.executor.finalStep, "end"].find(
    (name) => name !== undefined && knownStep(state, name)?.status === "COMPLETED",
  );
  const step = named ?? state.lastCompleted;
  return { type: "playbook.completed", at: env.now, ...(step !== null && { result_step: step }) };
}

/**
 * Ends every open command and every running step of a run that is cancelled or out of time. When a run is cancelled, a step
 * that had not begun did not fail: the log records it as skipped, as the API does.
 */
function stopEverything(state: ExecutionState, error: TaskError, env: EngineEnv): FlowEvent[] {
  const at = env.now;
  const commands = Object.entries(state.commands).flatMap(([id, command]) =>
    cancelled(id, command, error.message, env),
  );
  const steps = state.active.map((step): FlowEvent => {
    const { run, startedAt, attempts } = stepState(state, step);
    if (state.status === "CANCELLED" && attempts === 0) {
      return { type: "step.skipped", at, step, reason: "cancelled", set: [], next: [] };
    }
    return {
      type: "step.failed",
      at,
      step,
      step_run_id: run?.stepRunId ?? "",
      error: { ...error, step },
      handled: "no",
      set: [],
      next: [],
      duration_ms: Math.max(0, at - (startedAt ?? at)),
    };
  });
  return [...commands, ...steps];
}

/** A command is cancelled, and with it the approval for which it waits. */
function cancelled(
  command_id: string,
  { step, worker, parked }: OpenCommand,
  reason: string,
  env: EngineEnv,
): FlowEvent[] {
  return [
    ...(parked === undefined ? [] : closedApproval(command_id, step, parked, "cancelled", env)),
    { type: "command.cancelled", at: env.now, command_id, step, reason, ...(worker !== null && { worker }) },
  ];
}

/**
 * The steps that can no longer be reached after a step has ended: no running or waiting step leads to them, over arcs forward
 * or back. They become SKIPPED, so that people see what did not run. All at once, including those behind skipped steps only:
 * the skips themselves have no further effect.
 */
function unreachedSteps(state: ExecutionState, program: Program, ended: ProgramStep, env: EngineEnv): FlowEvent[] {
  if (state.failure !== null) return [];
  const targets = pendingTargets(state, program, ended.index);
  // Most steps end with a token for every target: the graph is walked only if a target got no token.
  if (targets.length === 0) return [];
  const alive = reachableSteps(state, program);
  const unreached = new Set(targets.filter((target) => !alive.has(target)));
  for (const step of unreached) {
    for (const target of pendingTargets(state, program, step)) if (!alive.has(target)) unreached.add(target);
  }
  const names = [...unreached].flatMap((index) => program.playbook.steps[index]?.name ?? []);
  return names.map((step) => ({ type: "step.skipped", at: env.now, step, reason: "unreached", set: [], next: [] }));
}

/** Targets to which nothing has happened. */
function pendingTargets(state: ExecutionState, program: Program, from: number): number[] {
  return program.graph.targets(from).filter((target) => {
    const name = program.playbook.steps[target]?.name;
    if (name === undefined) return false;
    const known = knownStep(state, name);
    return known === undefined || (known.status === "PENDING" && known.token === null && known.run === null);
  });
}

/** The steps that run, wait or are still to run at the end, and all that may follow them. */
function reachableSteps(state: ExecutionState, program: Program): Set<number> {
  const alive = new Set<number>();
  const final = finalStep(state, program);
  for (const name of [...state.active, ...state.waiting, ...(final === undefined ? [] : [final.step.name])]) {
    const step = program.steps.get(name);
    if (step !== undefined) alive.add(step.index);
  }
  // A set may grow while it is iterated: added elements are visited too.
  for (const step of alive) for (const target of program.graph.targets(step)) alive.add(target);
  return alive;
}

/** The final step, unless only others are to run. */
function finalStep(state: ExecutionState, program: Program): ProgramStep | undefined {
  const name = program.playbook.executor.finalStep;
  if (name === undefined || state.target !== null || state.only?.includes(name) === false) return undefined;
  const known = knownStep(state, name);
  const isDone = known !== undefined && (known.runs > 0 || known.endedAt !== null);
  return isDone ? undefined : program.steps.get(name);
}
