import type { Command } from "../../schema/words/command.ts";
import type { FlowEvent } from "../../schema/words/event.ts";
import type { Json } from "../../schema/words/json.ts";
import type { EngineEnv } from "../env.ts";
import type { ProgramStep } from "../program/program.ts";
import type { ExecutionState, LoopState, StepRun } from "../state/state.ts";
import { claimCommand, iterationsCommand } from "./issued-command.ts";

/**
 * Most iterations of one command (`exec: local`); further iterations go into the next command, after it. Its items are a list,
 * and a collection that is a number (a billion) would otherwise fill the memory.
 */
export const COMMAND_ITERATIONS_MAX = 100_000;

/** Iterations that may be issued, and where their items are. */
export interface Issuable {
  /** Index of the first. */
  next: number;
  /** Number of iterations left from there on. */
  left: number;
  /** Iterations that are running. */
  open: number;
  /** Most iterations that may run at a time. */
  openMax: number;
  items(from: number, to: number): Json[];
  /** How many from an index on may share a command; absent: all that are left. */
  together?(from: number): number;
  /** The next iteration after those up to `to`; absent: `to`. */
  after?(to: number): number;
  /** When they must have ended, milliseconds since 1970. */
  endsAt?: number;
}

/** Commands of which a loop has at least so many: a command of several iterations is for one worker, and they are to spread. */
const COMMANDS_MIN = 8;

/** Iterations of one command. */
interface CommandSize {
  /** At most. */
  most: number;
  /** At least, if so many are left: while others run, a place that is free waits until a whole command fits. */
  least: number;
}

function commandSize(
  step: ProgramStep,
  loop: LoopState,
  { left, open, openMax }: Issuable,
  env: EngineEnv,
): CommandSize {
  const settings = step.loop?.loop;
  if (settings?.exec === "local") return { most: open === 0 ? COMMAND_ITERATIONS_MAX : 0, least: 1 };
  const isParallel = settings?.exec === "auto" && settings.mode === "parallel";
  // Each iteration that waits does so by itself.
  const mayShare = isParallel && !step.tasks.some(({ task }) => task.kind === "wait");
  const atOnce = mayShare ? (env.iterationsAtOnce?.(step.step) ?? 1) : 1;
  const most = Math.max(1, Math.min(atOnce, Math.floor(Math.min(openMax, loop.total ?? 0) / COMMANDS_MIN)));
  return { most, least: loop.commands === 0 ? 1 : Math.min(most, left) };
}

/**
 * Commands for as many iterations as may run now: one for all if the loop is `exec: local`, else one for each, or for a few short
 * ones.
 */
export function issueIterations(
  state: ExecutionState,
  step: ProgramStep,
  run: StepRun,
  loop: LoopState,
  what: Issuable,
  env: EngineEnv,
): { events: FlowEvent[]; commands: Command[] } {
  const events: FlowEvent[] = [];
  const commands: Command[] = [];
  const isLocal = step.loop?.loop.exec === "local";
  const { most, least } = commandSize(step, loop, what, env);
  let { next, open, left } = what;
  for (;;) {
    const together = Math.min(left, what.together?.(next) ?? left);
    const size = Math.min(together, most, isLocal ? left : what.openMax - open);
    if (size < 1 || size < Math.min(least, together) || (isLocal && open > 0)) break;
    const id = env.newId();
    const range = { from: next, to: next + size };
    const items = what.items(range.from, range.to);
    const ends = what.endsAt === undefined ? {} : { endsAt: what.endsAt };
    events.push({ ...issued(step, run, id, env), iterations: range });
    commands.push(iterationsCommand(state, step, run, loop, { ...range, items, ...ends }, id));
    next = what.after?.(range.to) ?? range.to;
    open += size;
    left -= size;
  }
  return { events, commands };
}

/** The command of a cursor's next claim. */
export function issueClaim(
  state: ExecutionState,
  step: ProgramStep,
  run: StepRun,
  maxRows: number,
  env: EngineEnv,
): { event: FlowEvent; command: Command } {
  const id = env.newId();
  return {
    event: { ...issued(step, run, id, env), claim: true },
    command: claimCommand(state, step, run, maxRows, id),
  };
}

function issued(step: ProgramStep, run: StepRun, id: string, env: EngineEnv) {
  const name = step.step.name;
  return { type: "command.issued" as const, at: env.now, command_id: id, step: name, step_run_id: run.stepRunId };
}
