import type { EventOf, Fired, FlowEvent } from "../../schema/words/event.ts";
import { type JsonObject, own, setOwn } from "../../schema/words/json.ts";
import type { TaskError } from "../../schema/words/outcome.ts";
import { evolveApproval } from "./evolve-approval.ts";
import { evolveLoop, loopCommandCancelled, loopResult } from "./evolve-loop.ts";
import { evolveOverride, evolvePause } from "./evolve-override.ts";
import { beginRerun, copied, restored } from "./evolve-rerun.ts";
import { evolveWait } from "./evolve-wait.ts";
import { cancelledError, joinTasks, withRuns } from "./results.ts";
import {
  type ExecutionState,
  forgetByHand,
  type Override,
  openCommand,
  type Retry,
  removeName,
  type StepState,
  stepState,
  type Token,
} from "./state.ts";

/**
 * Folds one event into the state and returns it. This is the only way to change a state: replaying the log gives the state that
 * the live run had. Changes `state` in place (see engine/state/state.ts); an event that does not apply, because its command is
 * closed or its step does not run, changes nothing.
 */
export function evolve(state: ExecutionState, event: FlowEvent): ExecutionState {
  if ("approval_id" in event) return evolveApproval(state, event);
  switch (event.type) {
    case "playbook.initialized":
      return initialized(state, event);
    case "workflow.initialized":
      giveToken(state, { step: event.step, input: state.input, back: false }, null);
      return state;
    case "workflow.restored":
      return restored(state, event);
    case "command.issued":
      return issued(state, event);
    case "command.claimed":
    case "command.started":
      return claimed(state, event);
    case "command.parked":
    case "command.woken":
    case "signal.received":
      return evolveWait(state, event);
    case "task.done":
      return taskDone(state, event);
    case "task.progress":
      return runGoesOn(state, event);
    case "call.done":
    case "call.error":
    case "next.evaluated":
      return state;
    case "command.completed":
    case "command.failed":
      return commandEnded(state, event);
    case "command.cancelled":
      return commandCancelled(state, event);
    case "loop.started":
      startRun(state, event.step, event.step_run_id, event.at);
      return evolveLoop(state, event);
    case "loop.iteration.completed":
    case "loop.iteration.failed":
      if (openCommand(state, event.command_id) === undefined) return state;
      applyWrites(state, event.set);
      return evolveLoop(state, event);
    case "loop.results.stored":
    case "loop.results.kept":
    case "loop.done":
      return evolveLoop(state, event);
    case "step.completed":
      return event.kept === undefined
        ? stepEnded(state, event, "COMPLETED", null)
        : copied(state, event, event.kept, "COMPLETED");
    case "step.failed":
      return event.kept === undefined ? stepFailed(state, event) : copied(state, event, event.kept, "FAILED");
    case "step.skipped":
      return event.kept === undefined ? skipped(state, event) : copied(state, event, event.kept, "SKIPPED");
    case "workflow.completed":
    case "workflow.failed":
      state.ending = true;
      return state;
    case "playbook.completed":
      state.resultStep = event.result_step ?? null;
      return close(state, "COMPLETED", event.at, null);
    case "playbook.failed":
      return close(state, "FAILED", event.at, event.error);
    case "execution.cancelled":
      return close(state, "CANCELLED", event.at, cancelledError(event.reason));
    case "execution.paused":
    case "execution.resumed":
      return evolvePause(state, event);
    case "step.overridden":
      return evolveOverride(state, event);
  }
}

function initialized(state: ExecutionState, event: EventOf<"playbook.initialized">): ExecutionState {
  state.status = "RUNNING";
  state.executionId = event.execution_id;
  state.catalogId = event.catalog_id;
  state.path = event.path;
  state.startedAt = event.at;
  state.workload = event.workload;
  state.input = event.input;
  state.parent = event.parent ?? null;
  state.target = event.target ?? null;
  if (event.trace !== undefined) state.trace = event.trace;
  if (event.sealed_under !== undefined) state.sealedUnder = event.sealed_under;
  if (event.rerun !== undefined) beginRerun(state, event.rerun);
  return state;
}

/** Two arcs may lead to the same waiting step: it runs once, with the inputs of both, the later one winning. */
function giveToken(state: ExecutionState, fired: Fired, from: string | null): void {
  if (state.failure !== null) return;
  const step = stepState(state, fired.step);
  if (step.token === null) {
    step.token = { input: fired.input, from, back: fired.back };
    state.waiting.push(fired.step);
    return;
  }
  const input: JsonObject = { ...step.token.input };
  for (const key of Object.keys(fired.input)) setOwn(input, key, own(fired.input, key));
  step.token = { input, from, back: step.token.back || fired.back };
}

function startRun(state: ExecutionState, name: string, stepRunId: string, at: number): void {
  const step = stepState(state, name);
  const { token } = step;
  removeName(state.waiting, name);
  step.token = null;
  step.status = "RUNNING";
  step.runs += 1;
  step.attempts = 0;
  if (step.order === 0) step.order = nextOrder(state);
  step.startedAt = at;
  step.endedAt = null;
  step.error = null;
  step.loop = null;
  forgetByHand(step);
  delete step.reusedFrom;
  const given = Object.keys(step.given ?? {});
  step.run = {
    stepRunId,
    input: arrived(step, token),
    from: token?.from ?? state.lastCompleted,
    ...(given.length > 0 && { given }),
    loop: null,
    ended: null,
  };
  delete step.given;
  state.active.push(name);
}

/** What a step starts with: what came over the arc, and what a rerun gives it over that. */
export function arrived({ given }: Pick<StepState, "given">, token: Pick<Token, "input"> | null): JsonObject {
  const input = token?.input ?? {};
  if (given === undefined) return input;
  const merged: JsonObject = { ...input };
  for (const key of Object.keys(given)) setOwn(merged, key, own(given, key));
  return merged;
}

/** One more than the number of steps started so far. */
function nextOrder(state: ExecutionState): number {
  state.started += 1;
  return state.started;
}

function issued(state: ExecutionState, event: EventOf<"command.issued">): ExecutionState {
  const running = stepState(state, event.step).run;
  if (running === null || running.stepRunId !== event.step_run_id) {
    startRun(state, event.step, event.step_run_id, event.at);
  }
  const { iterations } = event;
  state.commands[event.command_id] = {
    step: event.step,
    attempt: 0,
    worker: null,
    issuedAt: event.at,
    startedAt: null,
    iterations:
      iterations === undefined
        ? null
        : { from: iterations.from, to: iterations.to, endedBelow: iterations.from, endedAbove: [] },
    claim: event.claim === true,
    values: {},
  };
  return iterations === undefined && event.claim !== true ? state : evolveLoop(state, event);
}

/** A new claim makes every earlier claim stale, and voids what that claim had reported of unfinished work. */
function claimed(
  state: ExecutionState,
  event: EventOf<"command.claimed"> | EventOf<"command.started">,
): ExecutionState {
  const command = openCommand(state, event.command_id);
  if (command === undefined || event.attempt < command.attempt) return state;
  if (event.attempt > command.attempt) {
    // One that was parked between two runs of a task goes on behind the tasks that had ended by then.
    if (command.woken?.wait.kind !== "retry") command.values = {};
    delete command.retries;
    delete command.running;
    delete command.released;
    if (event.type === "command.claimed" && event.lost_by !== undefined) {
      command.lostBy = [...(command.lostBy ?? []), event.lost_by];
    }
  }
  if (event.type === "command.started") command.running = true;
  command.attempt = event.attempt;
  command.worker = event.worker ?? null;
  command.startedAt ??= event.at;
  const step = stepState(state, command.step);
  // A claim that follows a wait is no second try.
  step.attempts = Math.max(step.attempts, event.attempt - (command.parks ?? 0));
  return state;
}

function taskDone(state: ExecutionState, event: EventOf<"task.done">): ExecutionState {
  const command = openCommand(state, event.command_id);
  if (command === undefined) return state;
  const iteration = event.iteration ?? 0;
  if (event.next_run_at === undefined) delete command.retries?.[iteration];
  else command.retries = { ...command.retries, [iteration]: retryOf(event, event.next_run_at) };
  if (!event.final || event.result === undefined) return state;
  const others = (command.values[iteration] ?? []).filter(([label]) => label !== event.task);
  command.values[iteration] = [...others, [event.task, event.result, event.bytes ?? 0]];
  return state;
}

/** Longest error message kept for a run that another run follows. */
const RETRY_MESSAGE_CHARS_MAX = 500;

function retryOf({ task, run, error }: EventOf<"task.done">, at: string): Retry {
  if (error === undefined) return { task, run, at, error: null };
  return { task, run, at, error: { code: error.code, message: error.message.slice(0, RETRY_MESSAGE_CHARS_MAX) } };
}

/** The awaited next run has begun. */
function runGoesOn(state: ExecutionState, event: EventOf<"task.progress">): ExecutionState {
  const retries = openCommand(state, event.command_id)?.retries;
  const iteration = event.iteration ?? 0;
  if ((retries?.[iteration]?.run ?? event.run) < event.run) delete retries?.[iteration];
  return state;
}

function commandEnded(
  state: ExecutionState,
  event: EventOf<"command.completed"> | EventOf<"command.failed">,
): ExecutionState {
  const command = openCommand(state, event.command_id);
  if (command === undefined) return state;
  delete state.commands[event.command_id];
  applyWrites(state, event.set);
  const step = stepState(state, command.step);
  if (step.run === null) return state;
  if (step.run.loop !== null) return evolveLoop(state, event, command);
  const values = withRuns(command.values[0] ?? [], event.results);
  step.result = joinTasks(event.tasks ?? [], values, event.pipeline === true);
  step.run.ended = { error: event.type === "command.failed" ? event.error : null };
  return state;
}

function commandCancelled(state: ExecutionState, event: EventOf<"command.cancelled">): ExecutionState {
  const command = openCommand(state, event.command_id);
  if (command === undefined) return state;
  delete state.commands[event.command_id];
  const loop = stepState(state, command.step).run?.loop;
  if (loop != null) loopCommandCancelled(loop, command);
  return state;
}

/**
 * Applies writes in order, the last one wins. Commands have copies of the values they may read, so later writes do not reach
 * them.
 */
export function applyWrites(state: ExecutionState, writes: EventOf<"step.completed">["set"] | undefined): void {
  for (const [name, value] of writes ?? []) setOwn(state.vars, name, value);
}

function stepEnded(
  state: ExecutionState,
  event: EventOf<"step.completed"> | EventOf<"step.failed">,
  status: "COMPLETED" | "FAILED" | "SKIPPED",
  error: TaskError | null,
): ExecutionState {
  const step = stepState(state, event.step);
  if (step.run?.loop != null) step.result = loopResult(step.run.loop, status === "COMPLETED" ? "completed" : "failed");
  else if (step.run === null && step.override !== undefined) takeOverride(state, step, step.override);
  else if (step.run === null) forgetByHand(step);
  step.status = status;
  step.error = error;
  step.endedAt = event.at;
  // A step whose guard could not be evaluated fails without having run.
  step.startedAt ??= event.at;
  dropToken(state, event.step, step);
  step.run = null;
  removeName(state.active, event.step);
  applyWrites(state, event.set);
  if (status === "COMPLETED") state.lastCompleted = event.step;
  followArcs(state, event.step, event.next);
  return state;
}

/** The step was ended by a person before it began. */
function takeOverride(state: ExecutionState, step: StepState, { result }: Override): void {
  step.result = result ?? null;
  if (step.order === 0) step.order = nextOrder(state);
  delete step.override;
}

/** A step that failed or was skipped before it ran loses its token; a token that arrived while it ran stays. */
function dropToken(state: ExecutionState, name: string, step: StepState): void {
  if (step.run !== null || step.token === null) return;
  step.token = null;
  removeName(state.waiting, name);
}

function stepFailed(state: ExecutionState, event: EventOf<"step.failed">): ExecutionState {
  stepEnded(state, event, endOfFailed(state, event.step), event.error);
  if (event.handled === "no") failRun(state, event.error);
  if (event.handled === "loop.done") state.failureAtEnd ??= event.error;
  return state;
}

/**
 * When a run is cancelled, a step that had not begun did not fail; a step that was stopped says so in its error. Older logs have
 * `step.failed` for both.
 */
function endOfFailed(state: ExecutionState, step: string): "FAILED" | "SKIPPED" {
  return state.status === "CANCELLED" && stepState(state, step).attempts === 0 ? "SKIPPED" : "FAILED";
}

/** From here on nothing new starts: all tokens are dropped, and running steps are drained. */
function failRun(state: ExecutionState, error: TaskError): void {
  state.failure ??= error;
  for (const name of state.waiting) stepState(state, name).token = null;
  state.waiting = [];
}

function skipped(state: ExecutionState, event: EventOf<"step.skipped">): ExecutionState {
  const step = stepState(state, event.step);
  dropToken(state, event.step, step);
  delete step.override;
  if (event.reason === "cancelled" || event.reason === "overridden") {
    // Of a loop that was skipped the results so far are kept.
    if (event.reason === "overridden" && step.run?.loop != null) step.result = loopResult(step.run.loop, "completed");
    // Its work was ready and had not begun, or a person has ended it.
    step.run = null;
    removeName(state.active, event.step);
  }
  step.status = "SKIPPED";
  step.endedAt = event.at;
  delete step.given;
  delete step.reusedFrom;
  if (event.reason !== "overridden") forgetByHand(step);
  applyWrites(state, event.set);
  followArcs(state, event.step, event.next);
  return state;
}

function followArcs(state: ExecutionState, from: string, next: readonly Fired[]): void {
  for (const fired of next) {
    giveToken(state, fired, from);
    const taken = (own(state.arcs, from) as Record<string, number> | undefined) ?? {};
    setOwn(taken, fired.step, ((own(taken, fired.step) as number | undefined) ?? 0) + 1);
    setOwn(state.arcs, from, taken);
  }
}

function close(
  state: ExecutionState,
  status: "COMPLETED" | "FAILED" | "CANCELLED",
  at: number,
  error: TaskError | null,
): ExecutionState {
  state.status = status;
  state.endedAt = at;
  state.error = error;
  delete state.paused;
  delete state.ending;
  for (const name of state.waiting) stepState(state, name).token = null;
  state.waiting = [];
  return state;
}
