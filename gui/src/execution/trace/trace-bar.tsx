import type { ReactNode } from "react";
import { durationText } from "../../parts/time.ts";
import { lasted, type Piece, type Span } from "../traced/pieces.ts";

/** A lane is at most about this wide: pieces of one kind that are nearer to each other than a part of it are drawn as one. */
const PIXELS = 1_000;
/** Pieces of one bar that are drawn. */
const PIECES_MAX = 400;

/** What a row did when, within the stretch that is shown. */
export function TraceBar({ pieces, view }: { pieces: readonly Piece[]; view: Span }): ReactNode {
  const length = view.to - view.from;
  const share = (ms: number) => `${Math.max(0, Math.min(100, (100 * ms) / length))}%`;
  return drawnOf(pieces, view).map((piece) => {
    const from = Math.max(piece.from, view.from);
    const to = Math.min(piece.to, view.to);
    return (
      <i
        key={`${piece.kind}${piece.tone}${piece.from}`}
        className={`piece ${piece.kind} tone-${piece.tone}`}
        title={`${WORDS[piece.kind]} for ${durationText(piece.to - piece.from)}`}
        style={{ left: share(from - view.from), width: share(to - from) }}
      />
    );
  });
}

const WORDS: Readonly<Record<Piece["kind"], string>> = {
  queued: "waited for a worker",
  ran: "ran",
  retry: "waited to be tried again",
  parked: "waited",
  whole: "was under way",
};

/** What a bar shows, in words; "" of one that shows nothing. */
export function barText(pieces: readonly Piece[], span: Span | undefined): string {
  if (span === undefined) return "";
  const parts = [`took ${durationText(span.to - span.from)}`];
  for (const kind of ["queued", "ran", "retry", "parked"] as const) {
    const ms = lasted(pieces, kind);
    if (ms >= 1) parts.push(`${WORDS[kind]} for ${durationText(ms)}`);
  }
  return parts.join(", ");
}

/** The pieces in sight; what is too close to see apart is joined. */
function drawnOf(pieces: readonly Piece[], view: Span): Piece[] {
  const least = (view.to - view.from) / PIXELS;
  const open = new Map<string, Piece>();
  const drawn: Piece[] = [];
  for (const piece of [...pieces].sort((one, other) => one.from - other.from)) {
    if (piece.to < view.from || piece.from > view.to) continue;
    const key = `${piece.kind}${piece.tone}`;
    const last = open.get(key);
    if (last !== undefined && piece.from <= last.to + least) {
      last.to = Math.max(last.to, piece.to);
      continue;
    }
    const fresh = { ...piece };
    open.set(key, fresh);
    drawn.push(fresh);
  }
  return drawn.slice(0, PIECES_MAX).sort((one, other) => DEPTH[one.kind] - DEPTH[other.kind]);
}

/** What overlaps is drawn over what stands earlier here. */
const DEPTH: Readonly<Record<Piece["kind"], number>> = { whole: 0, queued: 1, parked: 2, ran: 3, retry: 4 };

/** What the shades mean. */
export function Legend(): ReactNode {
  return (
    <ul className="legend" aria-label="What the bars mean">
      {LEGEND.map(([text, look]) => (
        <li key={text}>
          <i className={`piece ${look}`} /> {text}
        </li>
      ))}
    </ul>
  );
}

const LEGEND = [
  ["ran", "ran tone-good"],
  ["running", "ran tone-busy"],
  ["failed", "ran tone-bad"],
  ["waited for a worker", "queued tone-quiet"],
  ["waited to retry", "retry tone-warn"],
  ["waited for a time or signal", "parked tone-warn"],
] as const;
