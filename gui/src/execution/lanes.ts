import type { EventRecord, Step } from "../api/types.ts";
import type { Attempt } from "./attempts.ts";

/** A stretch of time in which a step did, or waited for, one thing. Milliseconds since 1970. */
export interface Piece {
  kind: "waits" | "runs" | "pauses";
  tone: "good" | "bad" | "busy" | "quiet";
  from: number;
  to: number;
}

/** What a step did when. */
export interface Lane {
  step: string;
  pieces: Piece[];
}

/** Pieces of a lane that are drawn: a loop of thousands of commands is a bar anyway. */
const PIECES_MAX = 200;

/** A lane for each step that began, from its attempts; from its own times where the log has not been read so far. */
export function lanesOf(
  steps: readonly Step[],
  attempts: readonly Attempt[],
  events: readonly EventRecord[],
  now: number,
): Lane[] {
  const stepOf = new Map<string, string>();
  for (const event of events) {
    const commandId = (event as EventRecord & Record<string, unknown>)["command_id"];
    if (event.event_type === "command.issued" && typeof commandId === "string") stepOf.set(commandId, event.node_id);
  }
  const pieces = new Map<string, Piece[]>();
  for (const attempt of attempts) {
    const step = stepOf.get(attempt.key.slice(0, attempt.key.indexOf("/")));
    if (step === undefined) continue;
    const list = pieces.get(step) ?? [];
    pieces.set(step, list);
    if (list.length < PIECES_MAX) list.push(...piecesOf(attempt, now));
  }
  return steps
    .filter(({ started_at }) => started_at !== null)
    .map((step) => ({ step: step.name, pieces: pieces.get(step.name) ?? whole(step, now) }));
}

function piecesOf(attempt: Attempt, now: number): Piece[] {
  if (attempt.claimedAt === undefined) return [{ kind: "waits", tone: "quiet", from: attempt.issuedAt, to: now }];
  const end = attempt.endedAt ?? now;
  const tone = attempt.failed ? "bad" : attempt.endedAt === undefined ? "busy" : "good";
  const pieces: Piece[] = [{ kind: "waits", tone: "quiet", from: attempt.issuedAt, to: attempt.claimedAt }];
  let from = attempt.claimedAt;
  for (const task of attempt.tasks.slice(0, PIECES_MAX)) {
    const began = Math.max(from, task.at - task.durationMs);
    if (task.run > 1 && began > from) pieces.push({ kind: "pauses", tone: "quiet", from, to: began });
    pieces.push({ kind: "runs", tone: task.status === "failed" ? "bad" : tone, from: began, to: task.at });
    from = task.at;
  }
  if (end > from) pieces.push({ kind: "runs", tone, from, to: end });
  return pieces;
}

function whole(step: Step, now: number): Piece[] {
  if (step.started_at === null) return [];
  const to = step.ended_at === null ? now : Date.parse(step.ended_at);
  const tone = step.status === "FAILED" ? "bad" : step.ended_at === null ? "busy" : "good";
  return [{ kind: "runs", tone, from: Date.parse(step.started_at), to }];
}
