import type { EventRecord, Step } from "../../api/types.ts";

/** A stretch of time in which a step did, or waited for, one thing. Milliseconds since 1970. */
export interface Piece {
  /** `waits` for a worker, `runs`, `pauses` before a retry; `gap`: neither of these; `whole`: not loaded. */
  kind: "waits" | "runs" | "pauses" | "gap" | "whole";
  tone: "good" | "bad" | "busy" | "quiet";
  from: number;
  to: number;
}

/** What a step did when. */
export interface Lane {
  step: string;
  from: number;
  to: number;
  pieces: Piece[];
}

/** A step's own stretch of time; undefined while it has not begun. */
export function spanOf(step: Step, now: number): { from: number; to: number } | undefined {
  if (step.started_at === null) return undefined;
  const from = Date.parse(step.started_at);
  return { from, to: Math.max(from, step.ended_at === null ? now : Date.parse(step.ended_at)) };
}

/** A step's lane, from the step's own times. */
export function wholeLane(step: Step, now: number): Lane {
  const span = spanOf(step, now) ?? { from: now, to: now };
  return { step: step.name, ...span, pieces: [{ kind: "whole", tone: toneOf(step), ...span }] };
}

/** A step's lane from its events: those within `view`, which may begin and end in the middle of its work. */
export function laneOf(
  step: Step,
  events: readonly EventRecord[],
  view: { from: number; to: number },
  now: number,
): Lane {
  const span = spanOf(step, now) ?? { from: now, to: now };
  const commands = new Map<string, Command>();
  const pieces: Piece[] = [];
  for (const event of events as readonly Fields[]) {
    const id = event["command_id"];
    if (typeof id !== "string") continue;
    const at = Date.parse(event.created_at);
    const command = commands.get(id) ?? { ...UNSEEN, since: Math.max(span.from, view.from), runs: new Map() };
    commands.set(id, command);
    pieces.push(...follow(command, event, at));
  }
  for (const command of commands.values()) {
    const to = Math.min(span.to, view.to);
    if (command.is === "over" || to <= command.since) continue;
    pieces.push({ kind: command.is === "waiting" ? "waits" : "runs", tone: "busy", from: command.since, to });
  }
  const least = (view.to - view.from) / PIXELS;
  const drawn = [...joined(pieces, least), ...gapsOf(pieces, span, least)];
  return { step: step.name, ...span, pieces: drawn.sort((left, right) => DEPTH[left.kind] - DEPTH[right.kind]) };
}

/** How long each kind of piece lasted, where they overlap counted once. */
export function sums(lane: Lane): Record<Piece["kind"], number> {
  const total = { waits: 0, runs: 0, pauses: 0, gap: 0, whole: 0 };
  for (const kind of Object.keys(total) as Piece["kind"][]) {
    let end = Number.NEGATIVE_INFINITY;
    const ofKind = lane.pieces.filter((piece) => piece.kind === kind).sort((left, right) => left.from - right.from);
    for (const { from, to } of ofKind) {
      total[kind] += Math.max(0, to - Math.max(from, end));
      end = Math.max(end, to);
    }
  }
  return total;
}

type Fields = EventRecord & Record<string, unknown>;

/** A command, from its events so far. */
interface Command {
  is: "unseen" | "waiting" | "running" | "over";
  /** When that began. */
  since: number;
  /** When the last run of each task ended, where it failed. */
  runs: Map<string, number>;
}

const UNSEEN = { is: "unseen" } as const;
/** What overlaps is drawn over what stands earlier here. */
const DEPTH: Record<Piece["kind"], number> = { whole: 0, gap: 1, waits: 2, runs: 3, pauses: 4 };
/** A lane is at most about this wide: pieces that are nearer to each other than a part of it are one. */
const PIXELS = 1_000;
const PIECES_MAX = 400;

/** Takes an event into the command, and gives the pieces that it ended. */
function follow(command: Command, event: Fields, at: number): Piece[] {
  const { since } = command;
  const become = (is: Command["is"]) => Object.assign(command, { is, since: at });
  switch (event.event_type) {
    case "command.issued":
      become("waiting");
      return [];
    case "command.claimed": {
      const wasRunning = command.is === "running";
      become("running");
      // Claimed again: its worker was lost.
      return [{ kind: wasRunning ? "runs" : "waits", tone: wasRunning ? "bad" : "quiet", from: since, to: at }];
    }
    case "command.parked":
      become("waiting");
      return [{ kind: "runs", tone: "good", from: since, to: at }];
    case "task.done":
      return taskRun(command, event, at);
    case "command.completed":
    case "command.failed":
    case "command.cancelled": {
      const tone = event.event_type === "command.completed" ? "good" : "bad";
      const wasWaiting = command.is === "waiting";
      become("over");
      return [{ kind: wasWaiting ? "waits" : "runs", tone: wasWaiting ? "quiet" : tone, from: since, to: at }];
    }
    default:
      return [];
  }
}

/** A task that failed and ran again in the same claim was waited for in between. */
function taskRun(command: Command, event: Fields, at: number): Piece[] {
  const key = `${event.node_name}/${String(event["iteration"] ?? "")}/${String(event["attempt"] ?? "")}`;
  const lasted = typeof event["duration_ms"] === "number" ? event["duration_ms"] : 0;
  const isBad = event.status === "FAILED";
  const before = command.runs.get(key);
  const began = Math.max(before ?? command.since, at - lasted);
  const pieces: Piece[] = [];
  if (before !== undefined && began > before) pieces.push({ kind: "pauses", tone: "quiet", from: before, to: began });
  pieces.push({
    kind: "runs",
    tone: isBad ? "bad" : "good",
    from: before === undefined ? command.since : began,
    to: at,
  });
  if (isBad) command.runs.set(key, at);
  else command.runs.delete(key);
  Object.assign(command, { is: "running", since: at });
  return pieces;
}

/** Neighbouring pieces of one kind that are too close to see apart are joined. */
function joined(pieces: readonly Piece[], least: number): Piece[] {
  const open = new Map<string, Piece>();
  const done: Piece[] = [];
  for (const piece of [...pieces].sort((left, right) => left.from - right.from)) {
    const key = `${piece.kind}${piece.tone}`;
    const last = open.get(key);
    if (last !== undefined && piece.from <= last.to + least) {
      last.to = Math.max(last.to, piece.to);
      continue;
    }
    const fresh = { ...piece };
    open.set(key, fresh);
    done.push(fresh);
  }
  return done.slice(0, PIECES_MAX);
}

/** Where a step was under way, and nothing of it was with a worker or on its way to one. */
function gapsOf(pieces: readonly Piece[], span: { from: number; to: number }, least: number): Piece[] {
  const gaps: Piece[] = [];
  let end = span.from;
  for (const { from, to } of [...pieces].sort((left, right) => left.from - right.from)) {
    if (from > end + least) gaps.push({ kind: "gap", tone: "quiet", from: end, to: from });
    end = Math.max(end, to);
  }
  if (span.to > end + least && pieces.length > 0) gaps.push({ kind: "gap", tone: "quiet", from: end, to: span.to });
  return gaps.slice(0, PIECES_MAX);
}

function toneOf({ status, ended_at }: Step): Piece["tone"] {
  if (status === "FAILED") return "bad";
  return ended_at === null ? "busy" : "good";
}
