import { openCommand } from "../../engine/state/state.ts";
import type { ReadyCommand } from "../../ports/execution-store.ts";
import type { ReportedEvent } from "../../schema/api/event-input.ts";
import { ERROR_STATUS, FlowError } from "../../schema/words/errors.ts";
import { type TaskError, WORKER_LOST } from "../../schema/words/outcome.ts";
import { isBehind } from "./claims/claims.ts";
import { runJob } from "./jobs.ts";
import type { OrchestratorParts } from "./parts.ts";
import { applyEvent, applyUndecided } from "./rounds/apply-event.ts";
import type { Round } from "./rounds/round.ts";
import { completeReport } from "./validate-report.ts";

/*
 * A command that ends its worker's process would end one worker after the other. So the claims that were lost with their workers
 * are counted, in the log (`lost_by` of `command.claimed`), and after a number of them the command fails.
 */

/** What became of a command that was lost: it may be claimed again, or it may not, as it has ended or has another claim. */
type Fate = "offered" | "failed" | "gone";

/**
 * Those of the commands that may be claimed. A command that was now lost for the last time fails with WORKER_LOST instead, and
 * is left out. So is one whose execution cannot be read or written at the moment: polling finds it again.
 */
export async function withoutLost(
  parts: Pick<OrchestratorParts, "roundLoop" | "limits" | "now">,
  found: readonly ReadyCommand[],
): Promise<ReadyCommand[]> {
  const fates = await Promise.all(
    found.map(async (command): Promise<Fate> => {
      const { lostBy, attempt } = command;
      // Each lost claim was a claim: with fewer of them, the execution need not be looked at.
      if (lostBy == null || attempt < parts.limits.lostClaims) return "offered";
      return await judge(parts, command, lostBy).catch((error: unknown) => {
        if (error instanceof FlowError && ERROR_STATUS[error.code] === 503) return "gone";
        throw error;
      });
    }),
  );
  return found.filter((_, index) => fates[index] === "offered");
}

async function judge(
  { roundLoop, limits, now }: Pick<OrchestratorParts, "roundLoop" | "limits" | "now">,
  command: ReadyCommand,
  worker: string,
): Promise<Fate> {
  let fate: Fate = "gone";
  await runJob(roundLoop, [command.executionId], (base) => ({
    ...base,
    check: (round) => checkKnown(round, command),
    async apply(round) {
      fate = "gone";
      const changes = round.changes(command.executionId);
      if (changes === undefined) return;
      await applyUndecided(changes, round.applyDeps);
      const open = openCommand(changes.live.state, command.commandId);
      if (open?.attempt !== command.attempt) return;
      const workers = [...(open.lostBy ?? []), worker];
      fate = workers.length < limits.lostClaims ? "offered" : "failed";
      if (fate === "offered") return;
      const { attempt, commandId: command_id } = command;
      const error = workerLost(command_id, open.step, workers);
      const event: ReportedEvent = { type: "command.failed", at: now(), command_id, attempt, step: open.step, error };
      await applyEvent(changes, completeReport(changes.live, event), round.applyDeps);
    },
  }));
  return fate;
}

/** The state in memory may be older than the row of the command: then the execution is loaded again. */
function checkKnown(round: Round, command: ReadyCommand): void {
  const { executionId, commandId, attempt } = command;
  const live = round.changes(executionId)?.live;
  if (live === undefined || !isBehind(live, command)) return;
  throw new FlowError("UNAVAILABLE", `Execution ${executionId} is not known up to claim ${attempt} of ${commandId}`);
}

/** The failure of a command that these workers lost, one entry for each lost claim. */
function workerLost(commandId: string, step: string, workers: string[]): TaskError {
  const names = [...new Set(workers)];
  const times = workers.length === 1 ? "once" : `${workers.length} times`;
  const what = `Command ${commandId} of step '${step}' was lost ${times}: ${listOf(names)} stopped answering while running it`;
  return {
    kind: "unknown",
    code: WORKER_LOST,
    message: `${what}. Look for what ends the worker's process: its log, its memory limit`,
    retryable: false,
    details: { workers },
    step,
  };
}

function listOf(names: readonly string[]): string {
  const quoted = names.map((name) => `'${name}'`);
  if (quoted.length < 2) return `worker ${quoted.join("")}`;
  return `workers ${quoted.slice(0, -1).join(", ")} and ${quoted.at(-1)}`;
}
