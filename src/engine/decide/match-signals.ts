import { openAccount } from "../../language/expression/parsing/budget.ts";
import { ReferenceNeeded } from "../../language/views/references.ts";
import type { Signal, Wait } from "../../schema/words/command.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { EventOf, FlowEvent } from "../../schema/words/event.ts";
import { type JsonObject, jsonSize } from "../../schema/words/json.ts";
import type { EngineEnv } from "../env.ts";
import type { Program } from "../program/program.ts";
import { knownAs } from "../state/evolve-wait.ts";
import {
  type ExecutionState,
  isTerminal,
  type KeptSignal,
  knownStep,
  type OpenCommand,
  openCommand,
} from "../state/state.ts";
import { holds, waitScope } from "./scope.ts";

/** Most signals that an execution keeps for waits to come. */
export const SIGNALS_KEPT_MAX = 1_000;
/** Most bytes of their data together, as JSON: they are in the state. */
export const SIGNALS_BYTES_MAX = 4 * 1_048_576;

/** A command that waits for a signal, with its id. */
type Waiter = [id: string, command: OpenCommand];

/** Why a signal cannot be taken, as the `FlowError` to be thrown; undefined if it can. */
export function judgeSignal(state: ExecutionState, { name, data }: Signal): FlowError | undefined {
  const refused = (code: FlowError["code"], why: string) =>
    new FlowError(code, `Signal '${name}' was not sent to execution ${state.executionId}: ${why}`);
  if (isTerminal(state.status)) return refused("already_terminal", `the execution has ended (${state.status})`);
  const { kept, bytes } = state.signals ?? { kept: [], bytes: 0 };
  if (kept.length < SIGNALS_KEPT_MAX && bytes + jsonSize(data) <= SIGNALS_BYTES_MAX) return undefined;
  const most = `${SIGNALS_KEPT_MAX} of them, or ${SIGNALS_BYTES_MAX / 1_048_576} MiB of data`;
  return refused("RATE_LIMITED", `it keeps as many as it may (${most}) that no step has waited for yet`);
}

/** Whether a signal was sent to the execution before, under the same id; one that was sent to everyone has its own. */
export function isRepeated(
  { signals }: ExecutionState,
  sent: Signal & { signal_id?: string; wakes?: number },
): boolean {
  const id = knownAs({ signal_id: "", ...sent });
  return id !== undefined && signals?.ids.includes(id) === true;
}

/** How many commands wait for this signal now: its name, its key, and their conditions. */
export function countWaiters(state: ExecutionState, signal: KeptSignal, program: Program, env: EngineEnv): number {
  return [...matching(state, waiters(state), signal, program, matchingEnv(env))].length;
}

/** Whether a command waits for a signal of this name and key, whatever its condition says. */
export function mayWaitFor({ commands }: ExecutionState, signal: Pick<Signal, "name" | "key">): boolean {
  return Object.values(commands).some(({ parked }) => parked !== undefined && isFor(parked.wait, signal));
}

/** A signal that has come wakes the command that has waited longest for it; one that was sent to everyone as many as were counted. */
export function wakeBySignal(
  state: ExecutionState,
  { signal_id: signalId }: EventOf<"signal.received">,
  program: Program,
  env: EngineEnv,
): FlowEvent[] {
  const signal = state.signals?.kept.find((one) => one.signalId === signalId);
  const woken: FlowEvent[] = [];
  if (signal === undefined) return woken;
  for (const [id, { step }] of matching(state, waiters(state), signal, program, matchingEnv(env))) {
    woken.push(wokenBy(id, step, signal, env));
    if (woken.length >= (signal.wakes ?? 1)) break;
  }
  return woken;
}

/** A command that waits from now on is woken by the first signal that was kept for it. */
export function wakeByKept(state: ExecutionState, commandId: string, program: Program, env: EngineEnv): FlowEvent[] {
  const command = openCommand(state, commandId);
  if (command === undefined || state.signals === undefined) return [];
  const once = matchingEnv(env);
  for (const signal of state.signals.kept) {
    if (signal.wakes !== undefined) continue;
    for (const [id] of matching(state, [[commandId, command]], signal, program, once)) {
      return [wokenBy(id, command.step, signal, env)];
    }
  }
  return [];
}

/** What came during a pause: the first signal for which a command waits wakes it. Asked again until none does. */
export function wakeAtResumption(state: ExecutionState, program: Program, env: EngineEnv): FlowEvent[] {
  const once = matchingEnv(env);
  const all = state.signals === undefined ? [] : waiters(state);
  for (const signal of state.signals?.kept ?? []) {
    const then = signal.wakes === undefined ? all : all.filter(([, { parked }]) => (parked?.since ?? 0) <= signal.at);
    for (const [id, { step }] of matching(state, then, signal, program, once)) return [wokenBy(id, step, signal, env)];
  }
  return [];
}

function wokenBy(command_id: string, step: string, { signalId }: KeptSignal, { now }: EngineEnv) {
  return { type: "command.woken" as const, at: now, command_id, step, signal: signalId };
}

/** Commands that wait for signals, those first that have waited longest. */
function waiters(state: ExecutionState): Waiter[] {
  return Object.entries(state.commands)
    .filter(([, { parked }]) => parked?.wait.kind === "signal")
    .sort(([, left], [, right]) => (left.parked?.since ?? 0) - (right.parked?.since ?? 0));
}

/** The commands of these that wait for this very signal. A condition that cannot be evaluated does not hold (control, rule 24). */
function* matching(
  state: ExecutionState,
  commands: readonly Waiter[],
  signal: KeptSignal,
  program: Program,
  env: EngineEnv,
): Generator<Waiter> {
  for (const [id, command] of commands) {
    if (command.parked === undefined || !isFor(command.parked.wait, signal)) continue;
    if (isMeant(state, command, signal, program, env)) yield [id, command];
  }
}

function isFor(wait: Wait, { name, key }: Pick<Signal, "name" | "key">): boolean {
  return wait.kind === "signal" && wait.name === name && wait.key === key;
}

function isMeant(
  state: ExecutionState,
  { step: name, parked }: OpenCommand,
  signal: KeptSignal,
  program: Program,
  env: EngineEnv,
): boolean {
  const step = program.steps.get(name);
  const run = knownStep(state, name)?.run;
  const when = step?.tasks.find(({ task }) => task.label === parked?.resume.task)?.waitWhen;
  if (step === undefined || run == null) return false;
  if (when === undefined) return true;
  try {
    const place = { iteration: parked?.resume.iteration, names: { signal: namesOf(signal) } };
    return holds(when, waitScope(state, program, step, run, place, env), env);
  } catch (error) {
    if (error instanceof ReferenceNeeded || !(error instanceof FlowError)) throw error;
    return false;
  }
}

/** A signal as templates read it. */
function namesOf({ signalId: _, at, wakes: _wakes, ...signal }: KeptSignal): JsonObject {
  return { key: null, id: null, by: null, ...signal, at: new Date(at).toISOString() };
}

/** All conditions of one decision have an account of their own: a signal that costs too much ends no execution. */
function matchingEnv(env: EngineEnv): EngineEnv {
  return env.account === undefined ? env : { ...env, account: openAccount() };
}
