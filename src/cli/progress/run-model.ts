import { type ExecutionState, isTerminal, type StepState, stepState } from "../../engine/state/state.ts";
import type { EventOf, FlowEvent, ProgressNumbers } from "../../schema/words/event.ts";
import { own } from "../../schema/words/json.ts";
import type { TaskError } from "../../schema/words/outcome.ts";
import { awaitedText } from "./text.ts";

/*
 * What is displayed of a run and its sub-playbooks, updated event by event. Each event costs the same however long the run is:
 * counters are read from the engine's state at drawing time, and of a step's ended sub-playbooks only the last is kept, so a
 * loop that calls a million of them needs no more memory than one.
 */

/** One execution: the run itself or a sub-playbook. */
export interface ExecutionRow {
  /** The engine's own state, which changes as the run goes on. */
  state: ExecutionState;
  /** The step that called it; undefined for the run itself. */
  caller: StepRow | undefined;
  /** Iteration of the caller's loop that called it. */
  iteration: number | undefined;
  /** Steps that have started or were skipped, in that order. */
  steps: StepRow[];
  byName: Map<string, StepRow>;
}

/** One step of an execution. */
export interface StepRow {
  name: string;
  execution: ExecutionRow;
  state: StepState;
  /** Its current or last run. */
  stepRunId: string;
  /** The highest number of runs that one of its tasks needed in the step's last run; 0 before the first task ended. */
  attempts: number;
  /** A task that failed and is about to run again, by its policy. */
  retry: { task: string; run: number; error: TaskError | undefined; at: number | undefined } | undefined;
  /** Why a command of it has no worker; valid until a worker claims it. */
  waits: { commandId: string; text: string } | undefined;
  /** Progress of the running task; not kept for iterations of a loop. */
  progress: { task: string; numbers: ProgressNumbers } | undefined;
  skipped: "when" | "admission" | "unreached" | "cancelled" | "overridden" | undefined;
  /** Sub-playbooks that run now. */
  children: Set<ExecutionRow>;
  /** How many have ended. */
  childrenEnded: number;
  /** The last that ended; a failed one is kept, so that its cause can be shown. */
  lastChild: ExecutionRow | undefined;
}

/** Sub-playbooks that outlived the completed step that called them, and failed or were cancelled. */
export interface Unattended {
  failed: number;
  cancelled: number;
  last: ExecutionRow | undefined;
}

/** A run as it is watched. */
export interface RunModel {
  /** The run itself; undefined before its first event. */
  root(): ExecutionRow | undefined;
  /** The execution of an id while it runs. */
  execution(id: string): ExecutionRow | undefined;
  /** Failed or cancelled sub-playbooks that no step waited for. */
  unattended(): Readonly<Unattended>;
  /** Applies events that were just folded into `state`; returns their execution. */
  observe(state: ExecutionState, events: readonly FlowEvent[]): ExecutionRow;
}

/** An empty model. */
export function createRunModel(): RunModel {
  const running = new Map<string, ExecutionRow>();
  const unattended: Unattended = { failed: 0, cancelled: 0, last: undefined };
  let root: ExecutionRow | undefined;
  return {
    root: () => root,
    unattended: () => unattended,
    execution: (id) => running.get(id),
    observe(state, events) {
      let execution = running.get(state.executionId);
      if (execution === undefined) {
        execution = newExecution(state, running);
        root ??= execution;
        running.set(state.executionId, execution);
      }
      for (const event of events) applyEvent(execution, event);
      if (isTerminal(state.status)) {
        running.delete(state.executionId);
        if (execution.caller !== undefined) endChild(execution.caller, execution, unattended);
      }
      return execution;
    },
  };
}

function newExecution(state: ExecutionState, running: ReadonlyMap<string, ExecutionRow>): ExecutionRow {
  const { parent } = state;
  const above = parent === null ? undefined : running.get(parent.execution_id);
  const caller = parent?.step === undefined ? undefined : above?.byName.get(parent.step);
  const index = parent?.iter === undefined ? undefined : own(parent.iter, "index");
  const iteration = typeof index === "number" ? index : undefined;
  const execution: ExecutionRow = { state, caller, iteration, steps: [], byName: new Map() };
  caller?.children.add(execution);
  return execution;
}

function endChild(caller: StepRow, child: ExecutionRow, unattended: Unattended): void {
  caller.children.delete(child);
  caller.childrenEnded += 1;
  const { status } = child.state;
  if (caller.state.run === null && caller.state.status === "COMPLETED" && status !== "COMPLETED") {
    if (status === "FAILED") unattended.failed += 1;
    else unattended.cancelled += 1;
    unattended.last = child;
  }
  if (caller.lastChild?.state.status !== "FAILED" || status === "FAILED") caller.lastChild = child;
}

function applyEvent(execution: ExecutionRow, event: FlowEvent): void {
  switch (event.type) {
    case "loop.started":
    case "command.issued":
      stepStarted(execution, event);
      return;
    case "command.parked":
      if (event.iteration !== undefined) return;
      stepRow(execution, event.step).waits = { commandId: event.command_id, text: awaitedText(event) };
      return;
    case "command.woken":
      stepRow(execution, event.step).waits = undefined;
      return;
    case "task.done":
      taskEnded(stepRow(execution, event.step), event);
      return;
    case "task.progress":
      if (event.iteration !== undefined || Object.keys(event.progress).length === 0) return;
      stepRow(execution, event.step).progress = { task: event.task, numbers: event.progress };
      return;
    case "step.completed":
    case "step.failed":
      stepEnded(stepRow(execution, event.step));
      return;
    case "step.skipped":
      stepRow(execution, event.step).skipped = event.reason;
      if (event.reason === "cancelled" || event.reason === "overridden") stepEnded(stepRow(execution, event.step));
      return;
    default:
      return;
  }
}

/** A command of a known step run (an iteration) starts nothing. */
function stepStarted(execution: ExecutionRow, event: EventOf<"loop.started"> | EventOf<"command.issued">): void {
  const row = stepRow(execution, event.step);
  if (row.stepRunId === event.step_run_id) return;
  row.stepRunId = event.step_run_id;
  row.attempts = 0;
  row.retry = undefined;
  row.waits = undefined;
  row.progress = undefined;
  row.skipped = undefined;
  row.childrenEnded = 0;
  row.lastChild = undefined;
}

function taskEnded(row: StepRow, event: EventOf<"task.done">): void {
  if (event.run > row.attempts) row.attempts = event.run;
  if (!event.final) {
    const at = event.next_run_at === undefined ? Number.NaN : Date.parse(event.next_run_at);
    row.retry = {
      ...{ task: event.task, run: event.run + 1, error: event.error },
      at: Number.isNaN(at) ? undefined : at,
    };
  } else if (row.retry?.task === event.task) row.retry = undefined;
  if (event.iteration === undefined) row.progress = undefined;
}

function stepEnded(row: StepRow): void {
  row.retry = undefined;
  row.progress = undefined;
}

function stepRow(execution: ExecutionRow, name: string): StepRow {
  const known = execution.byName.get(name);
  if (known !== undefined) return known;
  const row = newRow(execution, name);
  execution.byName.set(name, row);
  execution.steps.push(row);
  return row;
}

/** A row for a step before its first event; not yet added to the execution. */
export function newRow(execution: ExecutionRow, name: string): StepRow {
  return {
    name,
    execution,
    state: stepState(execution.state, name),
    stepRunId: "",
    attempts: 0,
    retry: undefined,
    waits: undefined,
    progress: undefined,
    skipped: undefined,
    children: new Set(),
    childrenEnded: 0,
    lastChild: undefined,
  };
}
