import type { ChildRunner } from "../../ports/children.ts";
import type { WritableResultStore } from "../../ports/result-store.ts";
import type { ClaimedWork } from "../../ports/work-server.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import type { FlowEvent } from "../../schema/words/event.ts";
import type { TaskError } from "../../schema/words/outcome.ts";
import { backOffMs } from "../backoff.ts";
import { runCommand } from "../command/run-command.ts";
import type { CommandProgram, Report, WorkerDeps } from "../deps.ts";
import type { RunningCommand } from "./running-command.ts";

/** What running the commands of a server needs. */
export interface RunClaimedCommandDeps {
  /** The playbook of a catalog entry. Throws `FlowError`; UNAVAILABLE and SERVER_UNREACHABLE are tried again. */
  programs(catalogId: string): Promise<CommandProgram>;
  deps: Omit<WorkerDeps, "children" | "results">;
  /** The parts that know for which claim they work. */
  childrenOf(claim: RunningCommand): ChildRunner;
  resultsOf(claim: RunningCommand): WritableResultStore;
  /** The parts that ask a server for secrets, which it gives to a claim alone; absent: those of `deps`. */
  secretsOf?(claim: RunningCommand): Pick<WorkerDeps, "credentials" | "keychain" | "sealers" | "stored">;
  /** The claim's place in a trace whose spans are kept; undefined for all others. */
  traceOf?(work: ClaimedWork): ClaimTrace | undefined;
}

/** Spans of one claim. */
export interface ClaimTrace {
  /** W3C `traceparent` of a task's run. */
  traceparent(taskRunId: string, run: number): string;
  /** Sees the claim's events once they are on their way. */
  observe(events: readonly FlowEvent[]): void;
}

/**
 * Runs a claimed command to its end. `waitsForChild` is called when a wait for a sub-playbook begins and ends. A playbook that
 * cannot be run fails the command; throws what `report` throws.
 */
export async function runClaimedCommand(
  parts: RunClaimedCommandDeps,
  claim: RunningCommand,
  report: Report,
  waitsForChild: (waits: boolean) => void,
): Promise<void> {
  const { command } = claim.work;
  const program = await programOf(parts, claim);
  if (program instanceof FlowError) {
    const error: TaskError = { kind: "configuration", code: program.code, message: program.message, retryable: false };
    const { command_id, step } = command;
    const { attempt } = claim.work;
    await report([{ type: "command.failed", at: parts.deps.clock.now(), command_id, attempt, step, error }]);
    return;
  }
  const children = observeWaits(parts.childrenOf(claim), waitsForChild);
  const { stops } = claim;
  const deps = { ...parts.deps, ...parts.secretsOf?.(claim), results: parts.resultsOf(claim), children, stops };
  const trace = parts.traceOf?.(claim.work);
  if (trace === undefined) return await runCommand(deps, program, claim.work, report, claim.signal);
  const traced = { ...deps, traceparent: trace.traceparent };
  await runCommand(traced, program, claim.work, observed(report, trace), claim.signal);
}

/** The command's playbook, requested until the server answers; or the reason why it cannot be run. */
async function programOf(
  { programs, deps: { clock, random } }: RunClaimedCommandDeps,
  { work, signal }: RunningCommand,
): Promise<CommandProgram | FlowError> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await programs(work.command.catalog_id);
    } catch (error) {
      if (!(error instanceof FlowError)) return new FlowError("INTERNAL", messageOf(error), { cause: error });
      if (error.code !== "UNAVAILABLE" && error.code !== "SERVER_UNREACHABLE") return error;
      await clock.sleep(backOffMs(tries, random), signal);
    }
  }
}

function observed(report: Report, trace: ClaimTrace): Report {
  return async (events) => {
    await report(events);
    trace.observe(events);
  };
}

/** The same runner, which also reports when a wait for a child begins and ends. */
function observeWaits(children: ChildRunner, waits: (waits: boolean) => void): ChildRunner {
  return {
    async run(request, signal) {
      if (request.async) return await children.run(request, signal);
      waits(true);
      try {
        return await children.run(request, signal);
      } finally {
        waits(false);
      }
    },
  };
}
