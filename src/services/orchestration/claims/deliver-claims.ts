import type { ExecutionStore } from "../../../ports/execution-store.ts";
import type { Command } from "../../../schema/words/command.ts";
import type { ReadyEntry, ReadyQueue } from "../rounds/ready-queue.ts";
import type { OpenRound, TentativeClaim } from "../rounds/round.ts";
import type { RoundEnd } from "../rounds/run-round.ts";
import { claimedCommand } from "./assign-commands.ts";

/** What a round issued can be claimed in it: one commit less, and no wait. */
export function offerIssued(round: OpenRound, ready: ReadyQueue, readyAt: number): void {
  for (const [executionId, changes] of round.changeSets) {
    for (const { commandId, kinds, labels, attempt, body } of changes.unclaimed()) {
      const batch = changes.batch === undefined ? {} : { batch: changes.batch };
      ready.add({ commandId, executionId, kinds, labels, attempt, readyAt, body, ...batch });
      round.offered.set(commandId, executionId);
    }
  }
}

/**
 * Takes back what was offered and not written; gives what was written and nobody has claimed, also what there was no room for:
 * another server may have a worker for it.
 */
export function keepIssued(round: OpenRound, ready: ReadyQueue, moved: ReadonlySet<string>): string[] {
  for (const [commandId, executionId] of round.offered) if (!moved.has(executionId)) ready.remove(commandId);
  const written = [...round.changeSets].filter(([executionId]) => moved.has(executionId));
  const unclaimed = written.flatMap(([, changes]) => changes.unclaimed());
  // Now it is in the store: who has read that since it was left out has not found it.
  for (const command of unclaimed) if (!ready.has(command.commandId)) ready.leftOut(command);
  return unclaimed.map(({ commandId }) => commandId);
}

/** What answering claims needs. */
export interface ClaimDeps {
  store: Pick<ExecutionStore, "commandBodies">;
  ready: ReadyQueue;
  leaseMs: number;
  /** A claim is durable. */
  onClaimed(entry: ReadyEntry): void;
  /** The commands' bodies cannot be had. */
  onFailed(error: unknown): void;
}

/** Answers those for whom the round has claimed commands. A claim that nobody hears of is for others at once. */
export async function deliverClaims(
  { pendingClaims, offered }: OpenRound,
  { committed, moved }: RoundEnd,
  deps: ClaimDeps,
): Promise<void> {
  const { ready } = deps;
  const isDurable = ({ entry }: TentativeClaim) => committed !== undefined && moved.has(entry.executionId);
  const durable = pendingClaims.flatMap(({ tentative }) => tentative.filter(isDurable));
  const bodies = await bodiesOf(durable, deps.store).catch((error: unknown) => {
    deps.onFailed(error);
    return new Map<string, Command>();
  });
  const leaseExpiresAt = (committed?.at ?? 0) + deps.leaseMs;
  for (const pendingClaim of pendingClaims) {
    const claims = pendingClaim.tentative.splice(0);
    const commands = claims.flatMap((claim) => {
      const { entry, attempt } = claim;
      const body = isDurable(claim) ? (entry.body ?? bodies.get(entry.commandId)) : undefined;
      if (body !== undefined) {
        deps.onClaimed(entry);
        return [claimedCommand(claim, body, leaseExpiresAt)];
      }
      if (isDurable(claim)) ready.add({ ...entry, attempt });
      else if (!offered.has(entry.commandId)) ready.add(entry);
      return [];
    });
    pendingClaim.deliver(commands);
  }
}

/** Commands that were issued by another process or too long ago, as they were issued. */
async function bodiesOf(claims: readonly TentativeClaim[], store: ClaimDeps["store"]): Promise<Map<string, Command>> {
  const missing = claims.flatMap(({ entry }) => (entry.body === undefined ? [entry.commandId] : []));
  const bodies = missing.length === 0 ? [] : await store.commandBodies(missing);
  return new Map(bodies.map((body) => [body.command_id, body]));
}
