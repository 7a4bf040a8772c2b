import { calledTask, type Program, requiredKinds } from "../../engine/program/program.ts";
import { isUnclaimed } from "../../engine/state/evolve-wait.ts";
import {
  type ExecutionState,
  isTerminal,
  knownStep,
  type OpenCommand,
  type Parked,
  progressOf,
  type Retry,
  type StepState,
} from "../../engine/state/state.ts";
import type { OpenChild } from "../../repositories/executions/execution-list.ts";
import { OPEN_COMMANDS_MAX, type OpenCommandAnswer, type WaitingForAnswer } from "../../schema/api/commands.ts";
import type {
  ArcAnswer,
  ExecutionAnswer,
  ExecutionStateAnswer,
  NextRetryAnswer,
  StepAnswer,
} from "../../schema/api/executions.ts";
import { defined } from "../../schema/words/defined.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import type { ExecutionView, PastView } from "./execution-reader.ts";

/** What the API derives from an execution's events, beside its row. */
export interface DerivedDetail {
  workload: JsonObject;
  steps: StepAnswer[];
  /** More than the length of `steps` if only changed steps were requested. */
  stepsTotal: number;
  arcs: ArcAnswer[];
  commands: OpenCommandAnswer[];
  next_retry: NextRetryAnswer | null;
  waiting_for: WaitingForAnswer[];
  paused?: NonNullable<ExecutionAnswer["paused"]>;
}

/**
 * Builds the answer from an execution's state synchronously: the next read changes the state in place. `children`: open
 * executions that it has called. `changed`: the steps to include; default all.
 */
export function detailOf(
  { state, source: { program } }: ExecutionView,
  children: readonly OpenChild[],
  now: number,
  changed: ReadonlySet<string> | undefined,
): DerivedDetail {
  return {
    workload: state.workload,
    steps: stepsOf(state, program, changed),
    stepsTotal: program.steps.size,
    arcs: arcsOf(state),
    commands: openCommandsOf(state, program, children),
    next_retry: nextRetryOf(state, now),
    waiting_for: waitingForOf(state, now),
    ...(state.paused !== undefined && { paused: pauseOf(state.paused) }),
  };
}

function pauseOf({ at, by, reason }: NonNullable<ExecutionState["paused"]>) {
  return { since: new Date(at).toISOString(), by: by ?? null, reason: reason ?? null };
}

/**
 * The steps of an execution as the API shows them: in the order of their first start, then those that were skipped and never
 * ran, then those to which nothing has happened, in the order of the document. `only` restricts the answer to these steps; if
 * it names any and the execution has ended, the steps it never reached are included. An execution that has ended waits for
 * nothing: steps it did not reach are SKIPPED.
 */
function stepsOf(state: ExecutionState, program: Program, only?: ReadonlySet<string>): StepAnswer[] {
  const names = [...program.steps.keys()];
  const isOver = isTerminal(state.status);
  const waiting = waitingSteps(state);
  const hasChanges = only === undefined || only.size > 0;
  return names
    .map((name, index) => ({ name, index, step: knownStep(state, name) }))
    .filter(({ name, step }) => only === undefined || only.has(name) || (isOver && hasChanges && isPending(step)))
    .sort((left, right) => rank(left.step) - rank(right.step) || left.index - right.index)
    .map(({ name, step }) => {
      const answer = stepAnswer(name, step);
      if (isOver && isPending(step)) return { ...answer, status: "SKIPPED" };
      return waiting.has(name) ? { ...answer, status: "WAITING" } : answer;
    });
}

/** Steps of which every open command is parked. */
function waitingSteps({ status, commands }: ExecutionState): ReadonlySet<string> {
  const waiting = new Set<string>();
  const busy = new Set<string>();
  if (isTerminal(status)) return waiting;
  for (const { step, parked } of Object.values(commands)) (parked === undefined ? busy : waiting).add(step);
  for (const step of busy) waiting.delete(step);
  return waiting;
}

/** The arcs that were taken, in the order in which their steps first ended, and how often: more than once around a loop. */
function arcsOf({ arcs }: ExecutionState): ArcAnswer[] {
  return Object.entries(arcs).flatMap(([from, targets]) =>
    Object.entries(targets).map(([to, times]) => ({ from, to, times })),
  );
}

const SKIPPED_RANK = Number.MAX_SAFE_INTEGER - 1;
const PENDING_RANK = Number.MAX_SAFE_INTEGER;

function isPending(step: StepState | undefined): boolean {
  return step === undefined || step.status === "PENDING";
}

function rank(step: StepState | undefined): number {
  if (step === undefined || (step.order === 0 && step.status === "PENDING")) return PENDING_RANK;
  return step.order === 0 ? SKIPPED_RANK : step.order;
}

function stepAnswer(name: string, step: StepState | undefined): StepAnswer {
  if (step === undefined) {
    return {
      name,
      status: "PENDING",
      started_at: null,
      ended_at: null,
      duration_ms: null,
      attempts: 0,
      runs: 0,
      order: 0,
    };
  }
  const { startedAt, endedAt, loop, error, overridden, iterationsByHand } = step;
  return {
    name,
    status: step.status,
    started_at: timeOf(startedAt),
    ended_at: timeOf(endedAt),
    duration_ms: startedAt === null || endedAt === null ? null : Math.max(0, endedAt - startedAt),
    attempts: step.attempts,
    runs: step.runs,
    order: step.order,
    ...(loop !== null && { loop: { ...loop } }),
    ...(error !== null && { error: { ...error } }),
    ...(step.reusedFrom !== undefined && { reused_from: { ...step.reusedFrom } }),
    ...(overridden !== undefined && { overridden: { ...overridden, at: isoTime(overridden.at) } }),
    ...(iterationsByHand !== undefined && {
      overridden_iterations: iterationsByHand.map((one) => ({ ...one, at: isoTime(one.at) })),
    }),
  };
}

function timeOf(at: number | null): string | null {
  return at === null ? null : isoTime(at);
}

function isoTime(at: number): string {
  return new Date(at).toISOString();
}

/**
 * The commands of an execution that have not ended, oldest first, as the API shows them with what they wait for; empty if the
 * execution has ended. `children`: open executions that it has called.
 */
function openCommandsOf(state: ExecutionState, program: Program, children: readonly OpenChild[]): OpenCommandAnswer[] {
  if (isTerminal(state.status)) return [];
  const entries = Object.entries(state.commands).slice(0, OPEN_COMMANDS_MAX);
  return entries.map(([command_id, command]) => {
    const { step, worker, issuedAt, startedAt, iterations, claim } = command;
    const attempt = command.attempt - (command.parks ?? 0) + (command.released === true ? 1 : 0);
    const called = children.filter(({ key }) => key.startsWith(`${command_id}-`)).map(({ executionId }) => executionId);
    const labels = program.steps.get(step)?.step.labels;
    return {
      command_id,
      execution_id: state.executionId,
      status: statusOf(command),
      step,
      attempt,
      worker,
      issued_at: new Date(issuedAt).toISOString(),
      claimed_at: startedAt === null ? null : new Date(startedAt).toISOString(),
      kinds: requiredKinds(program, step, claim),
      ...defined({ labels }),
      ...(iterations !== null && { iterations: { from: iterations.from, to: iterations.to } }),
      ...(called.length > 0 && { children: called }),
    };
  });
}

function statusOf(command: OpenCommand): NonNullable<OpenCommandAnswer["status"]> {
  if (command.parked !== undefined) return "WAITING";
  if (isUnclaimed(command)) return "PENDING";
  return command.running === true ? "RUNNING" : "CLAIMED";
}

/** True if an open command may have called another execution. */
export function mayHaveChildren(state: ExecutionState, program: Program): boolean {
  if (isTerminal(state.status)) return false;
  const steps = new Set(Object.values(state.commands).map(({ step }) => step));
  return [...steps].some((name) =>
    program.steps.get(name)?.tasks.some((task) => (calledTask(program, task) ?? task).task.kind === "playbook"),
  );
}

/**
 * The soonest next run of a failed task that waits to be retried; null if no task waits. A run whose time has come by `now`
 * (milliseconds since 1970) is under way and no longer waits.
 */
function nextRetryOf(state: ExecutionState, now: number): NextRetryAnswer | null {
  if (isTerminal(state.status)) return null;
  let next: NextRetryAnswer | undefined;
  for (const command of Object.values(state.commands)) {
    for (const [iteration, retry] of Object.entries(command.retries ?? {})) {
      if (Date.parse(retry.at) <= now || (next !== undefined && next.at <= retry.at)) continue;
      next = retryAnswer(command, Number(iteration), retry);
    }
  }
  return next ?? null;
}

/** What an execution waits for by itself at a moment, the soonest first, {@link OPEN_COMMANDS_MAX} at most. */
function waitingForOf(state: ExecutionState, now: number): WaitingForAnswer[] {
  if (isTerminal(state.status)) return [];
  const found: WaitingForAnswer[] = [];
  for (const { step, iterations, retries = {}, parked } of Object.values(state.commands)) {
    const which = (iteration: number) => (iterations === null ? { step } : { step, iteration });
    if (parked !== undefined) {
      const { wait, wake_at: due, since, resume } = parked;
      const times = { ...defined({ due }), since: new Date(since).toISOString() };
      found.push({ ...which(resume.iteration ?? 0), kind: wait.kind, ...awaitedOf(parked), ...times });
      continue;
    }
    for (const [iteration, { task, at }] of Object.entries(retries)) {
      if (Date.parse(at) > now) found.push({ ...which(Number(iteration)), kind: "retry", name: task, due: at });
    }
  }
  const timeOf = ({ due }: WaitingForAnswer) => (due === undefined ? Number.POSITIVE_INFINITY : Date.parse(due));
  return found.sort((left, right) => timeOf(left) - timeOf(right)).slice(0, OPEN_COMMANDS_MAX);
}

/** The signal, the approval or the task for which a command waits. */
function awaitedOf({ wait, resume, approval }: Parked): Pick<WaitingForAnswer, "name" | "key" | "approval_id"> {
  if (wait.kind === "signal") return { name: wait.name, ...defined({ key: wait.key }) };
  if (wait.kind === "retry") return { name: resume.task };
  return wait.kind === "approval" ? { name: wait.title, ...defined({ approval_id: approval?.id }) } : {};
}

/** What the API says of an execution as it was after an event: what {@link detailOf} would have said then, and its variables. */
export function pastStateOf(view: PastView): Omit<ExecutionStateAnswer, "execution_id"> {
  const { state, at, lastEventId } = view;
  const now = Date.parse(at);
  const { steps, stepsTotal, workload, arcs, commands, next_retry, waiting_for, paused } = detailOf(
    view,
    [],
    now,
    undefined,
  );
  return {
    event_id: lastEventId,
    at,
    status: state.status,
    progress: progressOf(state, stepsTotal),
    ended_at: timeOf(state.endedAt),
    error: state.error,
    workload,
    variables: state.vars,
    steps,
    arcs,
    commands,
    next_retry,
    waiting_for,
    ...defined({ paused }),
  };
}

function retryAnswer({ step, iterations }: OpenCommand, iteration: number, retry: Retry): NextRetryAnswer {
  const { task, at, run, error } = retry;
  return { step, task, ...(iterations !== null && { iteration }), at, run: run + 1, error };
}
