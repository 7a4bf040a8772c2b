import { dueOfApproval } from "../../engine/decide/approvals.ts";
import { nextDueOf } from "../../engine/state/evolve-approval.ts";
import { openCommand } from "../../engine/state/state.ts";
import type { DueWait } from "../../ports/execution-store.ts";
import type { Command } from "../../schema/words/command.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { runJob } from "./jobs.ts";
import type { LiveExecution } from "./memory/load-execution.ts";
import type { OrchestratorParts } from "./parts.ts";
import { type ApplyDeps, applyEvent, applyUndecided } from "./rounds/apply-event.ts";
import type { ChangeSet } from "./rounds/change-set.ts";

/** Timers that one run takes. */
export const DUE_MAX = 1_000;
/** How long they are left to the server that took them: if it dies, another one wakes them then. */
const TAKEN_MS = 5_000;

/**
 * Wakes parked commands whose time has come: each is claimable again, and one whose tasks only evaluate templates is run in the same
 * round. Returns how many were due.
 *
 * What a round has no time for waits for later rounds: so it waits first until what was woken before has gone on. Otherwise ten thousand
 * that are due together would all wait for their turn, with all of their executions in memory.
 */
export async function wakeDue(parts: OrchestratorParts): Promise<number> {
  const { store } = parts;
  await parts.roundLoop.below(DUE_MAX);
  const due = await store.takeDueWaits(TAKEN_MS, DUE_MAX);
  if (due.length === 0) return 0;
  const bodies = new Map(
    (await store.commandBodies(due.map(({ commandId }) => commandId))).map((body) => [body.command_id, body]),
  );
  const byExecution = new Map<string, DueWait[]>();
  for (const one of due) byExecution.set(one.executionId, [...(byExecution.get(one.executionId) ?? []), one]);
  await Promise.all([...byExecution].map(([id, waits]) => wakeExecution(parts, id, waits, bodies)));
  return due.length;
}

/** Never rejects: what fails is due still, and is taken again. */
async function wakeExecution(
  { roundLoop, now, observer, unavailable }: OrchestratorParts,
  executionId: string,
  waits: readonly DueWait[],
  bodies: ReadonlyMap<string, Command>,
): Promise<void> {
  try {
    await runJob(roundLoop, [executionId], (base) => ({
      ...base,
      mayWait: true,
      check(round) {
        const live = round.changes(executionId)?.live;
        if (live === undefined || waits.some((wait) => isParked(live, wait))) return;
        // Refused only on a state that was just loaded: what is in memory may be older than the row.
        throw new FlowError("CONFLICT", `Nothing of execution ${executionId} waits any more for what has come due`);
      },
      async apply(round) {
        const changes = round.changes(executionId);
        if (changes === undefined) return;
        await applyUndecided(changes, round.applyDeps);
        for (const wait of waits) {
          const body = bodies.get(wait.commandId);
          if (body === undefined || !isParked(changes.live, wait)) continue;
          if (await remind(changes, body, wait.takenAt, round.applyDeps)) continue;
          const woken = { type: "command.woken" as const, at: now(), command_id: wait.commandId, step: body.step };
          await applyEvent(changes, woken, round.applyDeps);
          changes.takeUp(body);
        }
      },
    }));
  } catch (error) {
    const isOver = error instanceof FlowError && (error.code === "CONFLICT" || error.code === "UNAVAILABLE");
    if (!isOver && unavailable(error) === undefined) observer.fault(error, [executionId]);
  }
}

/** The command waits for this very moment: one that was parked anew since has another. */
function isParked({ state }: LiveExecution, { commandId, dueAt }: DueWait): boolean {
  const parked = openCommand(state, commandId)?.parked;
  return state.status === "RUNNING" && parked !== undefined && nextDueOf(parked) === dueAt;
}

/**
 * Reminds of an approval whose own time has not come yet, and puts it before others; false if there is nothing but its end. `at`: the store's
 * clock, which said that something is due. This server's may be hours away from it.
 */
async function remind(
  changes: ChangeSet,
  { command_id: id, step }: Command,
  at: number,
  deps: ApplyDeps,
): Promise<boolean> {
  let isReminded = false;
  for (;;) {
    const parked = openCommand(changes.live.state, id)?.parked;
    const isOver = parked?.wake_at !== undefined && Date.parse(parked.wake_at) <= at;
    const due = parked === undefined || isOver ? undefined : dueOfApproval(id, step, parked, at);
    if (due === undefined) return isReminded;
    await applyEvent(changes, due, deps);
    isReminded = true;
  }
}
