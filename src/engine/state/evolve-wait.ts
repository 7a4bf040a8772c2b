import type { EventOf } from "../../schema/words/event.ts";
import { type ExecutionState, type OpenCommand, openCommand } from "./state.ts";

/** Folds that a command waits: its claim is over, and what the claim had begun is not awaited any more. */
export function parked(state: ExecutionState, event: EventOf<"command.parked">): ExecutionState {
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
  delete command.retries;
  return state;
}

/** Folds that what a command waited for has come: it may be claimed again. */
export function woken(state: ExecutionState, event: EventOf<"command.woken">): ExecutionState {
  const command = openCommand(state, event.command_id);
  if (command?.parked === undefined) return state;
  command.woken = { ...command.parked, at: event.at };
  delete command.parked;
  return state;
}

/** True for a command that may be claimed: no worker holds it, and it waits for nothing but a worker. */
export function isUnclaimed({ attempt, released, parked }: OpenCommand): boolean {
  return attempt === 0 || (released === true && parked === undefined);
}
