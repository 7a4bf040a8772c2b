import { setMaxListeners } from "node:events";
import { type Advance, beginAdvance, continueAdvance } from "../engine/decide/advance.ts";
import { dueOfApproval } from "../engine/decide/approvals.ts";
import { type StartRequest, startExecution } from "../engine/decide/start.ts";
import { startLabels } from "../engine/decide/start-labels.ts";
import { outOfTime, timeLimit } from "../engine/decide/time-limit.ts";
import type { EngineEnv } from "../engine/env.ts";
import { openDecisions, type SealedDecisions, sealedDecisions } from "../engine/sealing/decision-sealing.ts";
import { type Acceptance, accept } from "../engine/state/accept.ts";
import { type ExecutionState, emptyState, isTerminal, openCommand } from "../engine/state/state.ts";
import { openAccount } from "../language/expression/parsing/budget.ts";
import { loadedReferences } from "../language/template/loaded-references.ts";
import type { Command, Signal } from "../schema/words/command.ts";
import { FlowError } from "../schema/words/errors.ts";
import type { FlowEvent } from "../schema/words/event.ts";
import type { JsonObject } from "../schema/words/json.ts";
import { runCommand } from "../worker/command/run-command.ts";
import { after } from "../worker/deadline.ts";
import type { CommandProgram, WorkerDeps } from "../worker/deps.ts";
import { createEventLoopTurns } from "../worker/yield-to-event-loop.ts";
import type { AnswerApproval, createLocalApprovals, LocalApprovals } from "./approvals.ts";
import type { LocalResults } from "./results.ts";
import { createWaits, type LocalSignal, type LocalWaits, neverSent } from "./waits.ts";

/** Commands of one execution that run at a time in this process. */
export const CAPACITY_DEFAULT = 64;

/** What an execution in memory needs. */
export interface LocalDeps extends WorkerDeps {
  /** Fresh ids that grow. */
  newId(): string;
  /** Commands of one execution that run at a time. */
  capacity: number;
  /** Called when scopes begin and end: payloads of the scopes `step`, `execution` and `workflow` end with them. */
  scopes?: Pick<LocalResults, "began" | "stepEnded" | "ended">;
  /** What each execution is sent. Default: nothing. */
  signals?: readonly LocalSignal[];
  /** Who answers its approvals. Default: no person. */
  answer?: AnswerApproval;
  /** Sees every event as it is folded, with the state after it. */
  observe(state: ExecutionState, events: readonly FlowEvent[]): void;
}

/**
 * Runs one execution to its end in this process: the engine decides, the worker runs the commands, nothing is stored but
 * what the events say. Holds the state and the commands that run; the events are handed to `observe` and forgotten.
 *
 * Aborting the signal cancels the execution; the promise resolves when its tools have stopped. Throws `FlowError` when the
 * request cannot be started.
 */
export async function runExecution(
  deps: LocalDeps,
  source: CommandProgram,
  request: StartRequest,
  signal: AbortSignal,
): Promise<ExecutionState> {
  const { program } = source;
  const now = () => deps.clock.now();
  const { state, decisions, references, env, first, limitMs } = await opened(deps, program, request);
  const stop = new AbortController();
  // Every tool that runs listens to it, and how many there are is the capacity's affair.
  setMaxListeners(0, stop.signal);
  const finished = signalOf<void>();
  const runOne = async (command: Command) => {
    const { command_id, step } = command;
    const attempt = (openCommand(state, command_id)?.attempt ?? 0) + 1;
    await report([{ type: "command.claimed", at: now(), command_id, attempt, step, worker: deps.worker }]);
    await runCommand(deps, source, { command, attempt }, report, stop.signal);
    if (openCommand(state, command_id) !== undefined) openWaits().ran(command);
  };
  // Most runs wait for nothing.
  let waits: LocalWaits | undefined;
  const openWaits = () => (waits ??= waitsOf(deps, state, inject, (command) => queue.add([command])));
  const endIfForever = () => {
    if (isTerminal(state.status) || waits?.isForever() !== true || !queue.isIdle() || approvals.isAsking()) return;
    inject({ type: "workflow.failed", at: now(), error: neverSent(state) });
  };
  const queue = createQueue(deps.capacity, (command) => runOne(command).catch(finished.reject), endIfForever);
  const fold = async (event: FlowEvent): Promise<Acceptance> => {
    const verdict = accept(state, event);
    if (verdict !== "accepted") return verdict;
    const progress = beginAdvance(state, event);
    await references.evaluate(() => continueAdvance(progress, state, program, env()));
    await savePayloads(deps, decisions, progress.writes);
    deps.observe(state, progress.events);
    await endScopes(deps, state, progress.events);
    if (isTerminal(state.status)) end();
    else queue.add(progress.commands);
    waits?.observe(progress.events);
    await approvals.observe(progress.events);
    return verdict;
  };
  const end = () => {
    queue.clear();
    stop.abort(new FlowError("CANCELLED", "The execution has ended"));
    finished.resolve();
  };
  const inOrder = serial(fold);
  const approvals = approvalsOf(deps, { state, decide: inOrder, onSilence: endIfForever, onFault: finished.reject });
  const report = reporting(createEventLoopTurns(deps.clock), inOrder, finished.reject);

  const inject = (event: FlowEvent) => void inOrder(event).catch(finished.reject);
  const receive = (sent: Signal) => inOrder(received(deps, sent)).catch(finished.reject);
  let stopWatching = () => {};
  try {
    await inOrder(first);
    if (deps.signals?.length) openWaits().send(receive, endIfForever);
    stopWatching = endFromOutside(deps.clock, state, signal, limitMs, inject);
    await finished.promise;
  } finally {
    stopWatching();
    waits?.end();
    approvals.end();
    stop.abort(new FlowError("CANCELLED", "The execution has ended"));
    await queue.idle();
  }
  return state;
}

/** What its commands wait for. */
function waitsOf(
  { clock, signals = [] }: LocalDeps,
  state: ExecutionState,
  inject: (event: FlowEvent) => void,
  goOn: (command: Command) => void,
): LocalWaits {
  const wake = ({ command_id, step }: Command) => inject(dueEvent(state, command_id, step, clock.now()));
  return createWaits({ clock, state, signals, wake, goOn });
}

/** Its approvals, opened with the first: most runs have none. */
function approvalsOf(
  { clock, answer = () => Promise.resolve(undefined) }: LocalDeps,
  parts: Pick<Parameters<typeof createLocalApprovals>[0], "state" | "decide" | "onSilence" | "onFault">,
) {
  let approvals: LocalApprovals | undefined;
  return {
    isAsking: () => approvals?.isAsking() === true,
    async observe(events: readonly FlowEvent[]) {
      if (approvals === undefined && events.some(({ type }) => type === "approval.opened")) {
        const { createLocalApprovals: create } = await import("./approvals.ts");
        approvals = create({ ...parts, clock, answer });
      }
      approvals?.observe(events);
    },
    end: () => approvals?.end(),
  };
}

/** What has come due of a command that waits: people are to be reminded, or it goes on. */
function dueEvent(state: ExecutionState, command_id: string, step: string, at: number): FlowEvent {
  const parked = openCommand(state, command_id)?.parked;
  const isOver = parked?.wake_at !== undefined && Date.parse(parked.wake_at) <= at;
  const due = parked === undefined || isOver ? undefined : dueOfApproval(command_id, step, parked, at);
  return due ?? { type: "command.woken", at, command_id, step };
}

/** A signal as it enters the log. */
function received({ clock, newId }: LocalDeps, signal: Signal): FlowEvent {
  return { type: "signal.received", at: clock.now(), signal_id: newId(), ...signal };
}

/** What the work of a run reports to. */
function reporting(
  turns: ReturnType<typeof createEventLoopTurns>,
  inOrder: (event: FlowEvent) => Promise<Acceptance>,
  reject: (error: unknown) => void,
) {
  return async (events: FlowEvent[]) => {
    if (turns.isOver()) await turns.next();
    try {
      for (const event of events) await inOrder(event);
    } catch (error) {
      // An event that was folded and not followed up leaves the run WAITING FOREVER: it ends here, with the cause.
      reject(error);
      throw error;
    }
  };
}

/** The run before its first event. */
async function opened(deps: LocalDeps, program: CommandProgram["program"], request: StartRequest) {
  deps.scopes?.began(request.executionId, rootOf(request));
  const decisions = decisionsOf(deps, request);
  const references = loadedReferences(decisions.store);
  const fixed = { newId: deps.newId, references, env: deps.env, sealing: decisions.sealing };
  const env = (): EngineEnv => ({ ...fixed, now: deps.clock.now(), account: openAccount() });
  const { inputs } = program.playbook;
  const start = {
    ...request,
    input: await decisions.input(request.input, inputs),
    // Most playbooks declare no inputs, and need no checker.
    ...(inputs !== undefined && { findProblems: (await import("../platform/json-schema.ts")).problemsWithData }),
  };
  const first = await references.evaluate(() => startExecution(start, program, env()));
  const limitMs = await references.evaluate(() => limitOf(program, first.workload, env));
  return { state: emptyState(), decisions, references, env, first, limitMs };
}

/** The run's time limit. Nothing lists the runs of a process: labels are only refused as a server would refuse them. */
function limitOf(program: CommandProgram["program"], workload: JsonObject, env: () => EngineEnv): number | undefined {
  if (program.labels.length > 0) startLabels(program, workload, {}, env());
  return timeLimit(program, workload, env());
}

async function savePayloads(deps: LocalDeps, decisions: SealedDecisions, writes: Advance["writes"]): Promise<void> {
  for (const { ref, value, keeping } of writes) {
    const json = await decisions.payload(value, keeping?.sensitive === true);
    await deps.results.save(ref, json, keeping);
  }
}

/** Ends the run when the signal aborts, or when its time is over. The answer stops watching for either. */
function endFromOutside(
  clock: LocalDeps["clock"],
  state: ExecutionState,
  signal: AbortSignal,
  limitMs: number | undefined,
  inject: (event: FlowEvent) => void,
): () => void {
  const cancel = () => inject({ type: "execution.cancelled", at: clock.now(), reason: reasonOf(signal) });
  if (signal.aborted) cancel();
  else signal.addEventListener("abort", cancel, { once: true });
  const expire = (ms: number) => inject({ type: "workflow.failed", at: clock.now(), error: outOfTime(state.path, ms) });
  const endTimeout =
    limitMs === undefined || isTerminal(state.status) ? () => {} : after(clock, limitMs, () => expire(limitMs));
  return () => {
    endTimeout();
    signal.removeEventListener("abort", cancel);
  };
}

/** The execution at the top of the tree. */
function rootOf({ executionId, parent }: StartRequest): string {
  return parent?.root_execution_id ?? parent?.execution_id ?? executionId;
}

/** What decisions read and write: sensitive results opened and sealed, where this run seals anything. */
function decisionsOf({ results, sealers }: LocalDeps, request: StartRequest): SealedDecisions {
  const { executionId } = request;
  if (sealers === undefined) return openDecisions(results);
  return sealedDecisions(results, () => sealers.sealerOf({ executionId, rootExecutionId: rootOf(request) }));
}

/** What ends takes with it the payloads that were stored for its time alone. */
async function endScopes({ scopes }: LocalDeps, state: ExecutionState, events: readonly FlowEvent[]): Promise<void> {
  if (scopes === undefined) return;
  for (const event of events) {
    if (event.type !== "step.completed" && event.type !== "step.failed") continue;
    await scopes.stepEnded(state.executionId, event.step);
  }
  if (isTerminal(state.status)) await scopes.ended(state.executionId, state.resultStep);
}

/** Commands that wait, and those that run: never more than `capacity` at a time. */
function createQueue(capacity: number, run: (command: Command) => Promise<void>, onIdle: () => void) {
  const waiting: Command[] = [];
  const running = new Set<Promise<void>>();
  const fill = () => {
    while (running.size < capacity) {
      const command = waiting.shift();
      if (command === undefined) return;
      const work = run(command);
      running.add(work);
      void work.then(() => {
        running.delete(work);
        fill();
        if (running.size === 0) onIdle();
      });
    }
  };
  return {
    add(commands: readonly Command[]) {
      for (const command of commands) waiting.push(command);
      fill();
    },
    /** Drops what waits. */
    clear() {
      waiting.length = 0;
    },
    isIdle: () => running.size === 0,
    /** Resolves when nothing runs any more. */
    async idle() {
      await Promise.all(running);
    },
  };
}

function reasonOf(signal: AbortSignal): string {
  const { reason } = signal;
  return reason instanceof FlowError ? reason.message : "The execution was cancelled";
}

/** Calls `task` for one event after another, however many callers there are. */
function serial<T>(task: (event: FlowEvent) => Promise<T>): (event: FlowEvent) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (event) => {
    const next = last.then(() => task(event));
    last = next.catch(() => undefined);
    return next;
  };
}

/** A promise with its ends outside. (Node 20 has no `Promise.withResolvers`.) */
function signalOf<T>(): { promise: Promise<T>; resolve: (value: T) => void; reject: (error: unknown) => void } {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((good, bad) => {
    resolve = good;
    reject = bad;
  });
  // A rejection before anyone awaits it must not end the process; later callers still get it.
  promise.catch(() => undefined);
  return { promise, resolve, reject };
}
