import { type ExecutionState, isTerminal } from "../engine/state.ts";
import { OPEN_COMMANDS_MAX, type OpenCommandAnswer } from "../schema/execution-api.ts";

/** The commands of an execution that have not ended, oldest first, as the API shows them; none when it is over. */
export function openCommandsOf(state: ExecutionState): OpenCommandAnswer[] {
  if (isTerminal(state.status)) return [];
  const entries = Object.entries(state.commands).slice(0, OPEN_COMMANDS_MAX);
  return entries.map(([command_id, { step, attempt, worker, startedAt, iterations }]) => ({
    command_id,
    step,
    attempt,
    worker,
    claimed_at: startedAt === null ? null : new Date(startedAt).toISOString(),
    ...(iterations !== null && { iterations: { from: iterations.from, to: iterations.to } }),
  }));
}
