import type { Woken } from "../../schema/words/command.ts";
import type { EventOf } from "../../schema/words/event.ts";
import { jsonSize } from "../../schema/words/json.ts";
import { type ExecutionState, type OpenCommand, openCommand, SIGNAL_IDS_MAX } from "./state.ts";

/** The part of `evolve` that concerns waits. */
export function evolveWait(
  state: ExecutionState,
  event: EventOf<"command.parked"> | EventOf<"command.woken"> | EventOf<"signal.received">,
): ExecutionState {
  if (event.type === "command.parked") return parked(state, event);
  return event.type === "command.woken" ? woken(state, event) : received(state, event);
}

/** Folds that a command waits: its claim is over, and what the claim had begun is not awaited any more. */
function parked(state: ExecutionState, event: EventOf<"command.parked">): ExecutionState {
  const command = openCommand(state, event.command_id);
  if (command === undefined) return state;
  const { wait, resume, wake_at, limit, at } = event;
  command.parked = {
    ...{ wait, resume, since: at },
    ...(wake_at !== undefined && { wake_at }),
    ...(limit !== undefined && { limit }),
  };
  command.parks = (command.parks ?? 0) + 1;
  command.released = true;
  command.worker = null;
  delete command.woken;
  delete command.running;
  if (wait.kind !== "retry") delete command.retries;
  return state;
}

/** Folds that what a command waited for has come: it may be claimed again. */
function woken(state: ExecutionState, event: EventOf<"command.woken">): ExecutionState {
  const command = openCommand(state, event.command_id);
  if (command?.parked === undefined) return state;
  command.woken = { ...command.parked, at: event.at, ...signalOf(state, event) };
  delete command.parked;
  return state;
}

/** The signal that has woken a command: it is used up, one that was sent to everyone by the last that waited for it. */
function signalOf(state: ExecutionState, { signal: id }: EventOf<"command.woken">): Pick<Woken, "signal"> {
  const { signals } = state;
  const index = signals?.kept.findIndex(({ signalId }) => signalId === id) ?? -1;
  const found = signals?.kept[index];
  if (signals === undefined || found === undefined) return {};
  if (found.wakes !== undefined && found.wakes > 1) found.wakes -= 1;
  else {
    signals.kept.splice(index, 1);
    signals.bytes -= jsonSize(found.data);
  }
  const { signalId: _, at, wakes: _wakes, ...signal } = found;
  return { signal: { ...signal, at: new Date(at).toISOString() } };
}

/** Folds that a signal has come. */
function received(state: ExecutionState, event: EventOf<"signal.received">): ExecutionState {
  const { type: _, signal_id: signalId, ...signal } = event;
  state.signals ??= { kept: [], bytes: 0, ids: [] };
  const { kept, ids } = state.signals;
  kept.push({ signalId, ...signal });
  state.signals.bytes += jsonSize(signal.data);
  const id = knownAs(event);
  if (id !== undefined && ids.push(id) > SIGNAL_IDS_MAX) ids.shift();
  return state;
}

/** By what an execution knows a signal that it is sent again: its sender's id, or that of one to everyone, which is told once. */
export function knownAs({ id, signal_id, wakes }: Pick<EventOf<"signal.received">, "id" | "signal_id" | "wakes">) {
  return wakes === undefined ? id : `to everyone: ${signal_id}`;
}

/** True for a command that may be claimed: no worker holds it, and it waits for nothing but a worker. */
export function isUnclaimed({ attempt, released, parked }: OpenCommand): boolean {
  return attempt === 0 || (released === true && parked === undefined);
}
