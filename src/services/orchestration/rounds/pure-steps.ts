import type { Program, ProgramStep } from "../../../engine/program/program.ts";
import { accept } from "../../../engine/state/accept.ts";
import { evolve } from "../../../engine/state/evolve.ts";
import { isUnclaimed } from "../../../engine/state/evolve-wait.ts";
import { openCommand } from "../../../engine/state/state.ts";
import type { IssuedCommand } from "../../../ports/execution-store.ts";
import type { Command } from "../../../schema/words/command.ts";
import type { FlowEvent } from "../../../schema/words/event.ts";
import type { CommandProgram } from "../memory/program-cache.ts";
import { type ApplyDeps, applyEvent } from "./apply-event.ts";
import type { ChangeSet } from "./change-set.ts";

/**
 * Steps without effects, run by the server within the round that issues them: no claim, no call, no commit between them. Nothing
 * outside sees a run before its round is written, so a run whose round is not written is thrown away and done again.
 */
export interface PureSteps {
  /** Name of this server, as it stands in events. */
  worker: string;
  /** True if the commands of this step have no effects and wait for nothing. */
  suits(program: Program, step: ProgramStep): boolean;
  /**
   * What a worker would report of the command under this claim, in order, and its size in characters, roughly. Undefined: a worker must run it. Never
   * rejects because of the work.
   */
  run(
    source: CommandProgram,
    command: Command,
    attempt: number,
  ): Promise<{ events: FlowEvent[]; size: number } | undefined>;
}

/** Commands of one execution that one round runs: a cycle of such steps has no end, and a flush must not grow without bounds. */
const COMMANDS_MAX = 256;
/** How long a round runs such steps of one execution, milliseconds: so the others of the round have their turn. */
const EXECUTION_MS = 10;
/** How long one round runs such steps in all, milliseconds: the other jobs of the round are answered after it. */
const ROUND_MS = 50;
/** Size of what one round may write of such steps, characters: that of the longest batch of a worker. */
const ROUND_SIZE = 2 * 1_048_576;

/** What one round may still run. */
export interface Allowance {
  /** Takes a command of this execution from the allowance; false if the allowance is used up. The first is always given. */
  take(executionId: string): boolean;
  /** A command's events are so large. */
  used(size: number): void;
  /** Commands of this execution that were taken. */
  taken(executionId: string): number;
  /** Nothing more is taken. */
  isUsedUp(): boolean;
}

/** That of a new round. `busy` is a clock in milliseconds. */
export function openAllowance(busy: () => number): Allowance {
  const runs = new Map<string, { count: number; endsAt: number }>();
  let endsAt: number | undefined;
  let left = ROUND_SIZE;
  return {
    take(executionId) {
      const now = busy();
      endsAt ??= now + ROUND_MS;
      const run = runs.get(executionId) ?? { count: 0, endsAt: now + EXECUTION_MS };
      if (left <= 0 || now > endsAt || run.count >= COMMANDS_MAX || now > run.endsAt) return false;
      run.count += 1;
      runs.set(executionId, run);
      return true;
    },
    used(size) {
      left -= size;
    },
    taken: (executionId) => runs.get(executionId)?.count ?? 0,
    isUsedUp: () => left <= 0 || (endsAt !== undefined && busy() > endsAt),
  };
}

/**
 * Runs the waiting commands of an execution that have no effects, and those that follow from them. Those beyond the allowance are
 * held; those that a worker must run stay unclaimed.
 */
export async function runPureSteps(
  changes: ChangeSet,
  steps: PureSteps,
  allowance: Allowance,
  deps: ApplyDeps,
): Promise<void> {
  const { state, source, undecided } = changes.live;
  // What follows from those comes first.
  if (undecided.length > 0) return;
  /** Commands that are not run here: a worker must run them, or they are over. */
  const left = new Set<string>();
  const suits = ({ commandId, step, labels }: IssuedCommand) => {
    const known = left.has(commandId) || labels !== null ? undefined : source.program.steps.get(step);
    return known !== undefined && steps.suits(source.program, known);
  };
  for (;;) {
    const commands = changes.unclaimed().filter(suits);
    if (commands.length === 0) return;
    for (const command of commands) {
      // What ran before it may have ended the execution, or its loop.
      const open = openCommand(state, command.commandId);
      if (open === undefined || !isUnclaimed(open)) {
        left.add(command.commandId);
        continue;
      }
      if (!allowance.take(state.executionId)) return changes.hold(changes.unclaimed().filter(suits));
      const claimedAt = deps.now();
      const attempt = open.attempt + 1;
      // The state alone knows what a parked command has waited for.
      const { woken } = open;
      const done = await steps.run(source, woken === undefined ? command.body : { ...command.body, woken }, attempt);
      if (done === undefined) {
        left.add(command.commandId);
        continue;
      }
      allowance.used(done.size);
      await foldRun(changes, claimOf(command, attempt, claimedAt, steps.worker), done.events, deps);
      // It was parked, and the signal for which it waits was there before.
      const now = openCommand(state, command.commandId);
      if (now !== undefined && isUnclaimed(now)) changes.takeUp(command.body);
    }
  }
}

function claimOf({ commandId, step }: IssuedCommand, attempt: number, at: number, worker: string): FlowEvent {
  return { type: "command.claimed", at, command_id: commandId, attempt, step, worker };
}

/** Folds the claim and what was reported under it, and decides what follows from each. */
async function foldRun(
  changes: ChangeSet,
  claim: FlowEvent,
  events: readonly FlowEvent[],
  deps: ApplyDeps,
): Promise<void> {
  const { state } = changes.live;
  evolve(state, claim);
  changes.event(claim);
  for (const event of events) if (accept(state, event) === "accepted") await applyEvent(changes, event, deps);
}
