import { calledTask, type Program } from "../../engine/program/program.ts";
import { type ExecutionState, isTerminal, type OpenCommand, type Retry } from "../../engine/state/state.ts";
import type { OpenChild } from "../../repositories/executions/execution-list.ts";
import { type NextRetryAnswer, OPEN_COMMANDS_MAX, type OpenCommandAnswer } from "../../schema/api/executions.ts";
import { defined } from "../../schema/words/defined.ts";
import { requiredKinds } from "../orchestration/rounds/change-set.ts";

/**
 * The commands of an execution that have not ended, oldest first, as the API shows them with what they wait for; empty if the
 * execution has ended. `children`: open executions that it has called.
 */
export function openCommandsOf(
  state: ExecutionState,
  program: Program,
  children: readonly OpenChild[],
): OpenCommandAnswer[] {
  if (isTerminal(state.status)) return [];
  const entries = Object.entries(state.commands).slice(0, OPEN_COMMANDS_MAX);
  return entries.map(([command_id, command]) => {
    const { step, attempt, worker, issuedAt, startedAt, iterations, claim, running } = command;
    const called = children.filter(({ key }) => key.startsWith(`${command_id}-`)).map(({ executionId }) => executionId);
    const labels = program.steps.get(step)?.step.labels;
    return {
      command_id,
      execution_id: state.executionId,
      status: running === true ? "RUNNING" : attempt === 0 ? "PENDING" : "CLAIMED",
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
export function nextRetryOf(state: ExecutionState, now: number): NextRetryAnswer | null {
  if (isTerminal(state.status)) return null;
  let next: NextRetryAnswer | undefined;
  for (const command of Object.values(state.commands)) {
    for (const [iteration, retry] of Object.entries(command.retries ?? {})) {
      if (Date.parse(retry.at) <= now || (next !== undefined && next.at <= retry.at)) continue;
      next = answerOf(command, Number(iteration), retry);
    }
  }
  return next ?? null;
}

function answerOf({ step, iterations }: OpenCommand, iteration: number, retry: Retry): NextRetryAnswer {
  const { task, at, run, error } = retry;
  return { step, task, ...(iterations !== null && { iteration }), at, run: run + 1, error };
}
