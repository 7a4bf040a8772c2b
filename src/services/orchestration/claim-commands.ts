import { openCommand } from "../../engine/state/state.ts";
import { poolOf } from "../../schema/rules/pool-label.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { claimEntry, claimedCommand } from "./claims/claims.ts";
import { runJob, withTimeLimits } from "./jobs.ts";
import { withoutLost } from "./lost-commands.ts";
import type { Orchestrator } from "./orchestrator.ts";
import type { OrchestratorParts } from "./parts.ts";
import type { PendingClaim, TentativeClaim } from "./rounds/round.ts";
import type { ClaimedCommand, ClaimInput } from "./rounds/types.ts";

/** The part of {@link Orchestrator} that assigns commands to workers. */
export function createClaiming(
  parts: OrchestratorParts,
): Pick<Orchestrator, "claim" | "claimOne" | "offer" | "dismiss" | "untilReady"> {
  const waits = new Set<Wait>();
  const offer: Orchestrator["offer"] = async (commandIds, abandoned) => {
    const { store, ready, roundLoop, now, observer } = parts;
    try {
      const found = await withoutLost(parts, await store.claimableCommands(commandIds, abandoned));
      for (const command of found) ready.add({ ...command, readyAt: now() });
      if (found.length > 0) roundLoop.wake();
    } catch (error) {
      // Commands that were not offered now are found by polling.
      if (parts.unavailable(error) === undefined) observer.fault(error, []);
    }
  };
  return {
    offer,
    async claim(input, signal, left = signal) {
      const wait: Wait = { worker: input.worker, leave: () => undefined };
      waits.add(wait);
      try {
        return await waitForCommands(parts, { input, signal, left, wait }, offer);
      } finally {
        waits.delete(wait);
      }
    },
    dismiss(worker) {
      for (const wait of [...waits]) if (wait.worker === worker) wait.leave();
    },
    claimOne: (commandId, worker, work) => claimOne(parts, commandId, worker, work),
    async untilReady(ability, signal) {
      while (!signal.aborted && !parts.ready.suits(ability)) await untilLabelled(parts.labelled, signal);
    },
  };
}

/** Resolves when a command with labels becomes ready, or the signal aborts. */
function untilLabelled(listeners: Set<() => void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      listeners.delete(done);
      signal.removeEventListener("abort", done);
      resolve();
    };
    listeners.add(done);
    signal.addEventListener("abort", done, { once: true });
  });
}

/** A waiting claim. */
interface Wait {
  worker: string;
  /** Ends the wait. */
  leave(): void;
}

/** A claim: the worker, its requirements, its deadline, and whether the answer is still awaited. */
interface Claiming {
  input: ClaimInput;
  signal: AbortSignal | undefined;
  left: AbortSignal | undefined;
  wait: Wait;
}

/**
 * Time limit for a claim that does not want to wait, when something is ready: its execution may have to be loaded, and the
 * claim written.
 */
const AT_ONCE_MS = 100;

/** Waits among the pending claims until a round assigns commands, the time is over, or the answer is no longer awaited. */
async function waitForCommands(
  parts: OrchestratorParts,
  { input, signal, left, wait }: Claiming,
  offer: Orchestrator["offer"],
): Promise<ClaimedCommand[]> {
  const { roundLoop, deadlines, ready, refill } = parts;
  parts.gate.check("UNAVAILABLE");
  if (input.waitMs <= 0 && !ready.suits(input)) {
    await refill.poll();
    if (!ready.suits(input)) return [];
  }
  return await new Promise((resolve) => {
    let isOver = false;
    const leave = () => {
      isOver = true;
      if (pendingClaim.tentative.length === 0) pendingClaim.deliver([]);
    };
    const pendingClaim: PendingClaim = {
      input,
      tentative: [],
      deliver(commands) {
        // A round that could not be written delivers no commands: continue to wait.
        if (commands.length === 0 && !isOver && !parts.gate.isClosed()) return;
        roundLoop.waiting.delete(pendingClaim);
        cancel();
        signal?.removeEventListener("abort", leave);
        // No worker waits for them anymore: offer them to others at once, not when the lease expires.
        if (left?.aborted && commands.length > 0)
          void offer(commands.map(idOf), { worker: input.worker, isGone: false });
        resolve(commands);
      },
    };
    wait.leave = leave;
    const cancel = deadlines.add(Math.max(input.waitMs, AT_ONCE_MS), leave);
    signal?.addEventListener("abort", leave, { once: true });
    roundLoop.waiting.add(pendingClaim);
    roundLoop.wake();
    if (signal?.aborted) leave();
  });
}

function idOf({ command }: ClaimedCommand): string {
  return command.command_id;
}

async function claimOne(
  parts: OrchestratorParts,
  commandId: string,
  worker: string,
  work: PoolWork = {},
): Promise<ClaimedCommand | undefined> {
  parts.gate.check("UNAVAILABLE");
  const { store, limits, now } = parts;
  const [entry] = await withoutLost(parts, await store.claimableCommands([commandId]));
  if (entry === undefined) return undefined;
  if (work.isOfPool?.(poolOf(entry.labels)) === false) throw notOfPool(commandId);
  const ready = { ...entry, readyAt: now() };
  let tentative: TentativeClaim | undefined;
  let isRefused = false;
  const { at } = await runJob(withTimeLimits(parts), [entry.executionId], (base) => ({
    ...base,
    check(round) {
      if (round.changes(entry.executionId)?.live.state.status !== "PAUSED") return;
      throw new FlowError(
        "CONFLICT",
        `Execution ${entry.executionId} is paused: nothing of it is claimed before it is resumed`,
      );
    },
    async apply(round) {
      tentative = undefined;
      const changes = round.changes(entry.executionId);
      const open = changes && openCommand(changes.live.state, commandId);
      if (changes === undefined || open?.attempt !== entry.attempt || open.parked !== undefined) return;
      isRefused = work.runsPath?.(changes.live.state.path) === false;
      if (isRefused) return;
      parts.ready.remove(commandId);
      tentative = claimEntry(ready, changes, worker, now());
    },
  }));
  if (isRefused) throw notOfPool(commandId);
  const [body] = tentative === undefined ? [] : await store.commandBodies([commandId]);
  return tentative === undefined || body === undefined
    ? undefined
    : claimedCommand(tentative, body, at + limits.leaseMs);
}

type PoolWork = Pick<ClaimInput, "isOfPool" | "runsPath">;

function notOfPool(commandId: string): FlowError {
  const message = `Command ${commandId} is not of this worker's pool`;
  return new FlowError("FORBIDDEN", message, { detail: { reason: "pool" } });
}
