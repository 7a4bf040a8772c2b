import { evolve } from "../../../engine/state/evolve.ts";
import { isTerminal, openCommand } from "../../../engine/state/state.ts";
import type { Command } from "../../../schema/words/command.ts";
import type { Json, JsonObject } from "../../../schema/words/json.ts";
import type { Lane, Lanes } from "../memory/execution-cache.ts";
import type { LiveExecution } from "../memory/load-execution.ts";
import type { ClaimedCommand } from "../orchestrator.ts";
import type { Draft } from "../rounds/change-set.ts";
import type { ReadyCommands, ReadyEntry, Verdict } from "../rounds/ready-queue.ts";
import type { Demand, HeldClaim, OpenRound } from "../rounds/round.ts";

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
  deps: JoinDeps & { now(): number },
): void {
  if (ready.size() === 0) return;
  const behind = new Set<Lane>();
  const judge = (entry: ReadyEntry): Verdict => judgeEntry(entry, round, lanes, { ...deps, behind });
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
  // For whom another round, not yet committed, has claimed: that one answers, and its answer is the only one.
  const fed = waiting.filter(({ held }) => held.length === 0);
  for (let hungry = fed; hungry.length > 0; ) hungry = hungry.filter(give);
  for (const demand of fed) if (demand.held.length > 0) inOneAnswer(demand, round.demands);
  round.demands.push(...fed.filter(({ held }) => held.length > 0));
  for (const lane of behind) {
    if (lane.busy) continue;
    lanes.drop(lane);
    deps.isUsable(lane);
  }
}

/**
 * Of two answers to one worker either may arrive first: what its reports were given goes into the answer to its waiting claim, before
 * what that was given later. So the iterations of a loop begin in their order also right after an ordinary step. What that
 * answer has no room for stays with the reports.
 */
function inOneAnswer({ input, held }: Demand, reports: readonly Demand[]): void {
  const own = reports.filter((report) => report.input.worker === input.worker && report.held.length > 0);
  const counts = own.map((report) => report.held.length);
  const claims = [...own.flatMap((report) => report.held.splice(0)), ...held.splice(0)];
  held.push(...claims.splice(0, Math.min(input.limit, CLAIM_MAX)));
  for (const [index, report] of own.entries()) report.held.push(...claims.splice(0, counts[index]));
}

/** What is to know about executions that join a round. */
interface JoinDeps {
  /** Whether a lane can be part of a round now; sees to it that it soon can where it cannot. */
  isUsable(lane: Lane): boolean;
  /** Executions of a round. */
  joinMax: number;
}

function judgeEntry(
  entry: ReadyEntry,
  round: OpenRound,
  lanes: Lanes,
  deps: JoinDeps & { behind: Set<Lane> },
): Verdict {
  const member = round.lanes.get(entry.executionId);
  const lane = member ?? lanes.of(entry.executionId);
  if (lane.missing) return "drop";
  if (member === undefined && (round.lanes.size >= deps.joinMax || !deps.isUsable(lane))) return "skip";
  if (lane.live === null) return "skip";
  if (isTerminal(lane.live.state.status)) return "drop";
  const open = openCommand(lane.live.state, entry.commandId);
  if (open?.attempt === entry.attempt) return "take";
  if (!isBehind(lane.live, entry)) return "drop";
  // Another server has moved the execution since it was loaded here.
  if (member !== undefined || deps.behind.has(lane)) return "skip";
  if (entry.isAsked) return "drop";
  entry.isAsked = true;
  deps.behind.add(lane);
  return "skip";
}

/** Whether the entry tells of something that the state does not contain. A command's id is below that of its first event. */
function isBehind({ state, lastEventId }: LiveExecution, { commandId, attempt }: ReadyEntry): boolean {
  const open = openCommand(state, commandId);
  return open === undefined ? Number(commandId) > lastEventId : open.attempt < attempt;
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
