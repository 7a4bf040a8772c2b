import { openAccount } from "../../language/expression/parsing/budget.ts";
import { ReferenceNeeded } from "../../language/views/references.ts";
import type { Signal } from "../../schema/words/command.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { EventOf, FlowEvent } from "../../schema/words/event.ts";
import { jsonSize } from "../../schema/words/json.ts";
import type { EngineEnv } from "../env.ts";
import type { Program } from "../program/program.ts";
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

/** Whether a signal was sent to the execution before, under the same id. */
export function isRepeated({ signals }: ExecutionState, { id }: Signal): boolean {
  return id !== undefined && signals?.ids.includes(id) === true;
}

/** A signal that has come wakes the command that has waited longest for it. */
export function wakeBySignal(
  state: ExecutionState,
  { signal_id: signalId }: EventOf<"signal.received">,
  program: Program,
  env: EngineEnv,
): FlowEvent[] {
  const signal = state.signals?.kept.find((one) => one.signalId === signalId);
  if (signal === undefined) return [];
  for (const [id, { step }] of matching(state, waiters(state), signal, program, matchingEnv(env))) {
    return [wokenBy(id, step, signal, env)];
  }
  return [];
}

/** A command that waits from now on is woken by the first signal that was kept for it. */
export function wakeByKept(state: ExecutionState, commandId: string, program: Program, env: EngineEnv): FlowEvent[] {
  const command = openCommand(state, commandId);
  if (command === undefined || state.signals === undefined) return [];
  const once = matchingEnv(env);
  for (const signal of state.signals.kept) {
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
    for (const [id, { step }] of matching(state, all, signal, program, once)) return [wokenBy(id, step, signal, env)];
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
    const wait = command.parked?.wait;
    if (wait?.kind !== "signal" || wait.name !== signal.name || wait.key !== signal.key) continue;
    if (isMeant(state, command, signal, program, env)) yield [id, command];
  }
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
    return holds(when, waitScope(state, program, step, run, { iteration: parked?.resume.iteration, signal }, env), env);
  } catch (error) {
    if (error instanceof ReferenceNeeded || !(error instanceof FlowError)) throw error;
    return false;
  }
}

/** All conditions of one decision have an account of their own: a signal that costs too much ends no execution. */
function matchingEnv(env: EngineEnv): EngineEnv {
  return env.account === undefined ? env : { ...env, account: openAccount() };
}
