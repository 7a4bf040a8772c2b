import { type PointerEvent, type ReactNode, useState } from "react";
import { durationText } from "../../parts/time.ts";
import type { Span } from "../traced/pieces.ts";

/** About so many ticks are on the ruler. */
const TICKS = 5;
/** Nearer to each other than this share of the ruler, two ends are a click and no stretch. */
const CLICK_SHARE = 0.01;

/** Time since the execution's start. Drawing over it marks the stretch that is to be seen. */
export function Ruler({ view, start, onZoom }: { view: Span; start: number; onZoom(stretch: Span): void }): ReactNode {
  const [marked, setMarked] = useState<{ from: number; to: number }>();
  const length = view.to - view.from;
  const shareAt = ({ clientX, currentTarget }: PointerEvent<HTMLElement>) => {
    const { left, width } = currentTarget.getBoundingClientRect();
    return Math.max(0, Math.min(1, (clientX - left) / width));
  };
  return (
    <div className="ruler" aria-hidden="true">
      <span />
      <div
        className="scale"
        title="Drag over it to zoom in"
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          const share = shareAt(event);
          setMarked({ from: share, to: share });
        }}
        onPointerMove={(event) => {
          const share = shareAt(event);
          setMarked((before) => before && { from: before.from, to: share });
        }}
        onPointerUp={() => {
          if (marked === undefined) return;
          setMarked(undefined);
          const [low, high] = marked.from < marked.to ? [marked.from, marked.to] : [marked.to, marked.from];
          if (high - low > CLICK_SHARE) onZoom({ from: view.from + low * length, to: view.from + high * length });
        }}
        onPointerCancel={() => setMarked(undefined)}
      >
        {ticksOf(view.from - start, view.to - start).map((at) => {
          const percent = (100 * (at - (view.from - start))) / length;
          // Near the right end the label moves left of where it would begin, as far as it would stick out. The tick is a pixel.
          const transform = `translateX(min(0px, ${100 - percent}cqw - 100% - 1px))`;
          return (
            <span key={at} className="tick" style={{ left: `${percent}%` }}>
              <span className="label" style={{ transform }}>
                {tickText(at)}
              </span>
            </span>
          );
        })}
        {marked !== undefined && (
          <span
            className="marked"
            style={{
              left: `${100 * Math.min(marked.from, marked.to)}%`,
              width: `${100 * Math.abs(marked.to - marked.from)}%`,
            }}
          />
        )}
      </div>
    </div>
  );
}

/** Distances that a person reads easily, milliseconds: up to days of hours, minutes and seconds. */
const STEPS: readonly number[] = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * 1_000),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60_000),
  ...[1, 2, 6, 12].map((hours) => hours * 3_600_000),
];
const DAY_MS = 86_400_000;

/** A moment in short: `0`, `5 s`, `1.5 s`, `20 min`. */
function tickText(at: number): string {
  return at === 0
    ? "0"
    : durationText(at)
        .replace(/ 00? (s|min)$/, "")
        .replace(/\.0 s$/, " s")
        .replace(/ 0 h$/, "");
}

/** Round moments between two others, milliseconds. */
export function ticksOf(from: number, to: number): number[] {
  const rough = (to - from) / TICKS;
  const step = STEPS.find((each) => each >= rough) ?? Math.ceil(rough / DAY_MS) * DAY_MS;
  const ticks: number[] = [];
  for (let at = Math.ceil(from / step) * step; at < to - step / 4; at += step) ticks.push(at);
  return ticks;
}
