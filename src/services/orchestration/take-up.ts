import { isUnclaimed } from "../../engine/state/evolve-wait.ts";
import { openCommand } from "../../engine/state/state.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { runJob } from "./jobs.ts";
import type { Orchestrator } from "./orchestrator.ts";
import type { OrchestratorParts } from "./parts.ts";

/** Bodies of commands that one statement reads. */
const PAGE = 500;

/**
 * Goes on with the commands of an execution that was resumed and that no worker has: this server runs those without effects, the others
 * are offered to workers, and told to other servers. Never throws: what fails here is found by polling.
 */
export async function takeUp(
  parts: Pick<OrchestratorParts, "cache" | "store" | "roundLoop" | "pureSteps" | "unavailable" | "observer">,
  offer: Orchestrator["offer"],
  executionId: string,
): Promise<void> {
  try {
    const cached = parts.cache.entry(executionId);
    await parts.cache.load(cached);
    const commands = Object.entries(cached.live?.state.commands ?? {});
    const waiting = commands.flatMap(([id, command]) => (isUnclaimed(command) ? [id] : []));
    for (let at = 0; at < waiting.length; at += PAGE) {
      const ids = waiting.slice(at, at + PAGE);
      if (parts.pureSteps !== undefined) await runPure(parts, executionId, ids);
      await offer(ids);
      parts.observer.returned(ids);
    }
  } catch (error) {
    // A job's refusal says already that the store is away.
    const isAway =
      (error instanceof FlowError && error.code === "UNAVAILABLE") || parts.unavailable(error) !== undefined;
    if (!isAway) parts.observer.fault(error, [executionId]);
  }
}

/** The round runs those of its commands that have no effects. */
async function runPure(
  { store, roundLoop }: Pick<OrchestratorParts, "store" | "roundLoop">,
  executionId: string,
  ids: readonly string[],
): Promise<void> {
  const bodies = await store.commandBodies(ids);
  await runJob(roundLoop, [executionId], (base) => ({
    ...base,
    check: () => undefined,
    async apply(round) {
      const changes = round.changes(executionId);
      if (changes === undefined || changes.live.state.status !== "RUNNING") return;
      for (const body of bodies) {
        const open = openCommand(changes.live.state, body.command_id);
        if (open !== undefined && isUnclaimed(open)) changes.takeUp(body);
      }
    },
  }));
}
