import { evolve } from "../engine/evolve.ts";
import { isTerminal, openCommand } from "../engine/state.ts";
import type { Command } from "../schema/command.ts";
import type { Json, JsonObject } from "../schema/json.ts";
import type { ClaimedCommand } from "./advance.ts";
import type { Draft } from "./draft.ts";
import type { Lane, Lanes } from "./lanes.ts";
import type { ReadyCommands, ReadyEntry, Verdict } from "./ready-commands.ts";
import type { Demand, HeldClaim, OpenRound } from "./round.ts";

/** Commands that are handed out in one answer; the next ones come with the next. */
export const CLAIM_MAX = 256;

/**
 * Gives commands that are ready to those who want them, as events of the round: the oldest first, first to the workers whose
 * reports are answered by this round, then to those who wait, one each in turn, so that work spreads over workers.
 *
 * A command can be given when its execution is part of the round, or can join it: loaded, and in no other round.
 */
export function assignCommands(
  round: OpenRound,
  waiting: readonly Demand[],
  ready: ReadyCommands,
  lanes: Lanes,
  deps: { now(): number; load(lane: Lane): void; joinMax: number },
): void {
  if (ready.size() === 0) return;
  const judge = (entry: ReadyEntry): Verdict => judgeEntry(entry, round, lanes, deps);
  const give = (demand: Demand): boolean => {
    const { input, held } = demand;
    if (held.length >= Math.min(input.limit, CLAIM_MAX)) return false;
    const entry = ready.take(input, judge);
    if (entry === undefined) return false;
    const draft = round.draft(entry.executionId) ?? round.join(lanes.of(entry.executionId));
    held.push(claimEntry(entry, draft, input.worker, deps.now()));
    return true;
  };
  for (const demand of round.demands) while (give(demand));
  const fed = waiting.filter(({ held }) => held.length === 0);
  for (let hungry = fed; hungry.length > 0; ) hungry = hungry.filter(give);
  round.demands.push(...fed.filter(({ held }) => held.length > 0));
}

function judgeEntry(
  entry: ReadyEntry,
  round: OpenRound,
  lanes: Lanes,
  deps: { load(lane: Lane): void; joinMax: number },
): Verdict {
  const member = round.lanes.get(entry.executionId);
  const lane = member ?? lanes.of(entry.executionId);
  if (lane.missing) return "drop";
  if (lane.live === null) {
    if (!lane.busy) deps.load(lane);
    return "skip";
  }
  if (member === undefined && (lane.busy || round.lanes.size >= deps.joinMax)) return "skip";
  const { state } = lane.live;
  const open = openCommand(state, entry.commandId);
  return open === undefined || isTerminal(state.status) || open.attempt !== entry.attempt ? "drop" : "take";
}

/** Folds the claim into the execution. Nothing follows from it. */
export function claimEntry(entry: ReadyEntry, draft: Draft, worker: string, now: number): HeldClaim {
  const attempt = entry.attempt + 1;
  const step = openCommand(draft.live.state, entry.commandId)?.step ?? "";
  const event = { type: "command.claimed" as const, at: now, command_id: entry.commandId, attempt, step, worker };
  evolve(draft.live.state, event);
  draft.event(event);
  return { entry, attempt, draft };
}

/** A claim as it is answered. */
export function claimedCommand(held: HeldClaim, command: Command, leaseExpiresAt: number): ClaimedCommand {
  const step = held.draft.live.source.program.steps.get(command.step)?.step;
  const spec: JsonObject = {
    pipeline: step?.pipeline ?? false,
    ...(step?.timeoutMs !== undefined && { timeout_ms: step.timeoutMs }),
    ...(step !== undefined && { result: step.result as unknown as Json }),
  };
  return { command, attempt: held.attempt, leaseExpiresAt, tool: (step?.tasks ?? []) as unknown as Json, spec };
}
