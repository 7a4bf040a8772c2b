import { calledTask, type Program, type ProgramStep, type ProgramTask } from "../../engine/program/program.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Command } from "../../schema/words/command.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { FlowEvent } from "../../schema/words/event.ts";
import { type Json, jsonSize } from "../../schema/words/json.ts";
import { createNoopTool, PURE_KINDS } from "../../tools/registry.ts";
import type { CommandProgram, WorkerDeps } from "../deps.ts";
import { runCommand } from "./run-command.ts";

/** What running steps without effects needs. */
export interface PureStepsDeps {
  /** Name under which they are claimed. */
  worker: string;
  clock: Clock;
  /** A number in [0, 1). */
  random(): number;
  /** Of every run; never aborted, because no run waits. */
  signal: AbortSignal;
}

/**
 * Steps of an account for all templates of one command: some 1 to 5 ms. A command that needs more is a worker's: the
 * server that runs these steps has other things to do meanwhile.
 */
const ACCOUNT_STEPS = 20_000;
/** Most iterations of one command (`exec: local`). */
const ITERATIONS_MAX = 64;

/**
 * Runs commands of steps without effects, as a worker does, but at once: nothing is called, stored, read or waited for.
 *
 * `suits` is true if the commands of a step may be run so: all its tasks are of a pure kind, and it has nothing that would have to be
 * waited for (retries, time limits but those of a wait), fetched (credentials, keychain, a worker's environment) or sealed.
 *
 * `run` gives what a worker would report of the command's first claim, and its size in characters, roughly. It gives undefined if
 * the command turns out to need more than its own data (a stored payload, a sealed value, a secret, too much work), and never rejects
 * because of the work.
 */
export function createPureSteps({ worker, clock, random, signal }: PureStepsDeps) {
  const known = new WeakMap<ProgramStep, boolean>();
  const noop = Promise.resolve(createNoopTool());
  return {
    worker,
    suits(program: Program, step: ProgramStep): boolean {
      const verdict = known.get(step) ?? isPure(program, step);
      known.set(step, verdict);
      return verdict;
    },
    async run(
      source: CommandProgram,
      command: Command,
      attempt: number,
    ): Promise<{ events: FlowEvent[]; size: number } | undefined> {
      // Where a trace's spans are kept, the worker's are among them.
      if (command.trace !== undefined || (command.loop?.items.length ?? 0) > ITERATIONS_MAX) return undefined;
      let isLeft = false;
      const leave = (): Promise<never> => {
        isLeft = true;
        return Promise.reject(new FlowError("UNAVAILABLE", "This needs a worker"));
      };
      const account = { left: ACCOUNT_STEPS };
      const events: FlowEvent[] = [];
      const deps: WorkerDeps = {
        ...{ worker, clock, random, account },
        tools: { get: () => noop },
        credentials: { find: leave },
        sealers: { sealerOf: leave },
        children: { run: leave },
        results: { kind: "none", load: leave, save: leave },
        env: {},
        log: () => undefined,
      };
      const report = async (more: readonly FlowEvent[]) => void events.push(...more);
      await runCommand(deps, source, { command, attempt }, report, signal);
      if (!isLeft && account.left >= 0) return { events, size: jsonSize(events as unknown as Json) };
      const step = source.program.steps.get(command.step);
      // Its next command would be tried in vain as well.
      if (step !== undefined && account.left < 0) known.set(step, false);
      return undefined;
    },
  };
}

function isPure(program: Program, { step, tasks, timeoutMs, needs }: ProgramStep): boolean {
  // A wait is parked, whatever its limits.
  const waits = tasks.length === 1 && tasks[0]?.task.kind === "wait";
  if ((timeoutMs !== undefined && !waits) || step.loop?.cursor !== undefined || step.result.sensitive) return false;
  if (needs.members.has("keychain") || needs.members.has("env") || needs.names.has("env")) return false;
  return tasks.every((task) => isPureTask(task) && isPureTask(calledTask(program, task) ?? task, PURE_KINDS));
}

/** @param kinds the kinds that count; absent: all. */
function isPureTask({ task, auth, timeoutMs, policy }: ProgramTask, kinds?: ReadonlySet<string>): boolean {
  if (kinds?.has(task.kind) === false || auth !== undefined) return false;
  if (timeoutMs !== undefined && task.kind !== "wait") return false;
  return !task.result.sensitive && policy.every(({ rule }) => rule.do !== "retry" && rule.do !== "jump");
}
