import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { durationText } from "../../parts/time.ts";
import { type Lane, type Piece, sums } from "./lanes.ts";
import type { Stretch } from "./ruler.tsx";

/** A step and what it did in the stretch that is shown. */
export function LaneRow({
  lane,
  view,
  onHover,
  onZoom,
}: {
  lane: Lane;
  view: Stretch;
  onHover(lane: Lane): void;
  onZoom(stretch: Stretch): void;
}): ReactNode {
  const share = (ms: number) => `${Math.max(0, Math.min(100, (100 * ms) / (view.to - view.from)))}%`;
  return (
    <div className="lane">
      <Link
        from="/executions/$executionId"
        to="."
        search={(before) => ({ ...before, tab: "steps" as const, step: lane.step })}
        className="name"
        title={lane.step}
      >
        {lane.step}
      </Link>
      <button
        type="button"
        className="track"
        aria-label={`${laneText(lane)} Look closer`}
        onClick={() => onZoom(lane)}
        onMouseEnter={() => onHover(lane)}
        onFocus={() => onHover(lane)}
      >
        {lane.pieces.map((piece) => {
          const from = Math.max(piece.from, view.from);
          const to = Math.min(piece.to, view.to);
          return to < from ? null : (
            <span
              key={`${piece.kind}${piece.tone}${piece.from}`}
              className={`piece ${piece.kind} tone-${piece.tone}`}
              title={`${KINDS[piece.kind]}, ${durationText(piece.to - piece.from)}`}
              style={{ left: share(from - view.from), width: share(to - from) }}
            />
          );
        })}
      </button>
    </div>
  );
}

const KINDS: Record<Piece["kind"], string> = {
  waits: "waits for a worker",
  runs: "runs",
  pauses: "waits to try again",
  gap: "nothing of it runs or waits for a worker",
  whole: "under way",
};

/** What a lane shows, in words. */
export function laneText(lane: Lane): string {
  const { waits, runs, pauses, gap } = sums(lane);
  const parts = [`under way for ${durationText(lane.to - lane.from)}`];
  if (waits > 0) parts.push(`waited ${durationText(waits)} for a worker`);
  if (runs > 0) parts.push(`ran ${durationText(runs)}`);
  if (pauses > 0) parts.push(`waited ${durationText(pauses)} to try again`);
  if (gap > 0) parts.push(`nothing of it ran for ${durationText(gap)}`);
  return `${lane.step}: ${parts.join(", ")}.`;
}

/** What the shades mean. */
export function Legend(): ReactNode {
  return (
    <ul className="legend" aria-label="What the shades mean">
      <li>
        <span className="piece waits" /> waits for a worker
      </li>
      <li>
        <span className="piece runs tone-good" /> runs
      </li>
      <li>
        <span className="piece runs tone-busy" /> still runs
      </li>
      <li>
        <span className="piece runs tone-bad" /> failed
      </li>
      <li>
        <span className="piece pauses" /> waits to try again
      </li>
      <li>
        <span className="piece gap" /> gap
      </li>
    </ul>
  );
}
