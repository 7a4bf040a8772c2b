import type { CommandTrace, TaskTrace } from "./step-traces.ts";

/** A stretch of time, milliseconds since 1970. */
export interface Span {
  from: number;
  to: number;
}

/** A stretch of a bar, in which one thing was done or waited for. */
export interface Piece extends Span {
  /**
   * `queued`: no worker had it; `ran`; `retry`: waited to be tried again; `parked`: waited for a time, a signal or a person, without
   * a worker; `whole`: under way, without more being known.
   */
  kind: "queued" | "ran" | "retry" | "parked" | "whole";
  tone: "good" | "bad" | "busy" | "warn" | "quiet";
}

/** What a command did when. `end` is now, or when the execution ended. */
export function commandPieces(command: CommandTrace, end: number): Piece[] {
  return piecesOf(command, command.tasks, end, command.endedAt, toneOf(command));
}

/** What one iteration did when: a command may have many of them, one after the other. */
export function iterationPieces(
  command: CommandTrace,
  iteration: { index: number; endedAt: number | undefined; isFailed: boolean },
  end: number,
): Piece[] {
  const tasks = command.tasks.filter((task) => task.iteration === iteration.index);
  const tone = iteration.endedAt === undefined ? "busy" : iteration.isFailed ? "bad" : "good";
  const isAlone = command.iterations === undefined || command.iterations.to - command.iterations.from === 1;
  if (isAlone) return piecesOf(command, tasks, end, iteration.endedAt ?? command.endedAt, tone);
  // Of a command that it shares, an iteration is under way from its first task to its end.
  const [first] = tasks;
  const to = iteration.endedAt ?? tasks.at(-1)?.to;
  if (to === undefined) return [];
  return [...taskPieces(tasks), ...rest(tasks, Math.min(first?.from ?? to, to), to, tone)];
}

/** From the first to the last moment of some pieces. */
export function spanOfPieces(pieces: readonly Piece[]): Span | undefined {
  if (pieces.length === 0) return undefined;
  let [from, to] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const piece of pieces) {
    from = Math.min(from, piece.from);
    to = Math.max(to, piece.to);
  }
  return { from, to };
}

/** How long pieces of a kind lasted together. */
export function lasted(pieces: readonly Piece[], kind: Piece["kind"]): number {
  return pieces.reduce((sum, piece) => (piece.kind === kind ? sum + piece.to - piece.from : sum), 0);
}

function piecesOf(
  command: CommandTrace,
  tasks: readonly TaskTrace[],
  end: number,
  endedAt: number | undefined,
  tone: Piece["tone"],
): Piece[] {
  const pieces: Piece[] = [];
  const over = Math.max(endedAt ?? end, command.issuedAt ?? Number.NEGATIVE_INFINITY);
  const claims = [...command.claims].sort((one, other) => one.at - other.at);
  const [first] = claims;
  const taken = first?.at ?? tasks[0]?.from;
  if (command.issuedAt !== undefined) {
    pieces.push({
      kind: "queued",
      tone: "quiet",
      from: command.issuedAt,
      to: Math.max(command.issuedAt, taken ?? over),
    });
  }
  for (const [index, claim] of claims.entries()) {
    const next = claims[index + 1];
    const parked = command.parkedAt.find((at) => at >= claim.at && at <= (next?.at ?? Number.POSITIVE_INFINITY));
    const until = parked ?? next?.at ?? over;
    const own = tasks.filter(({ to }) => to >= claim.at && to <= until);
    // A worker that was lost did not end it: the next claim did.
    const isLost = next !== undefined && parked === undefined;
    pieces.push(
      ...taskPieces(own),
      ...rest(own, claim.at, until, isLost ? "bad" : parked === undefined ? tone : "good"),
    );
    if (parked === undefined) continue;
    // A retry that is far away is parked too.
    const kind = own.at(-1)?.isFailed === true ? "retry" : "parked";
    pieces.push({ kind, tone: "warn", from: parked, to: next?.at ?? over });
  }
  if (first === undefined) pieces.push(...taskPieces(tasks));
  return pieces.filter((piece) => piece.to >= piece.from);
}

/** The runs of tasks, with what lies between a failed one and the next. */
function taskPieces(tasks: readonly TaskTrace[]): Piece[] {
  const failedAt = new Map<string, number>();
  return [...tasks]
    .sort((one, other) => one.to - other.to)
    .flatMap((task) => {
      const key = `${task.task}/${task.iteration ?? ""}`;
      const before = failedAt.get(key);
      if (task.isFailed) failedAt.set(key, task.to);
      else failedAt.delete(key);
      const ran: Piece = { kind: "ran", tone: task.isFailed ? "bad" : "good", from: task.from, to: task.to };
      if (before === undefined || before >= task.from) return [ran];
      return [{ kind: "retry", tone: "warn", from: before, to: task.from } satisfies Piece, ran];
    });
}

/** What was under way before the first task and after the last: rendering inputs, a task that still runs. */
function rest(tasks: readonly TaskTrace[], from: number, to: number, tone: Piece["tone"]): Piece[] {
  const last = tasks.reduce((latest, task) => Math.max(latest, task.to), from);
  const isRetrying = tasks.at(-1)?.isFailed === true && tone === "busy";
  const pieces: Piece[] = [];
  const first = tasks.reduce((earliest, task) => Math.min(earliest, task.from), to);
  // Rendering its inputs belongs to the first run.
  if (tasks.length > 0 && first > from)
    pieces.push({ kind: "ran", tone: tasks[0]?.isFailed === true ? "bad" : "good", from, to: first });
  if (to > last) pieces.push({ kind: isRetrying ? "retry" : "ran", tone: isRetrying ? "warn" : tone, from: last, to });
  return pieces;
}

function toneOf({ outcome }: CommandTrace): Piece["tone"] {
  if (outcome === undefined) return "busy";
  return outcome === "completed" ? "good" : outcome === "failed" ? "bad" : "quiet";
}
