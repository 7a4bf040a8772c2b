import { type KeyboardEvent, type PointerEvent, type ReactNode, useState } from "react";
import "../../styles/bars.css";

/** One bar of a chart: how many ended in a stretch of time, by how. */
export interface Bar {
  /** Milliseconds since 1970. */
  from: number;
  until: number;
  completed: number;
  failed: number;
  cancelled: number;
}

/** Parts of a bar from below, with the colour of each. */
const PARTS = ["completed", "cancelled", "failed"] as const;
/** Units of the drawing; it is stretched to the room that there is. */
const WIDTH = 1_000;
const HEIGHT = 100;
/** What stays free between two bars, of a bar's width. */
const GAP = 0.26;

/**
 * Stacked bars over time. Pointing at one says what it counts; choosing one, or drawing over some, chooses their time. With keys: arrows
 * go through the bars, with Shift over several, and Enter chooses. It is an SVG of a hundred rectangles: a library of charts weighs as
 * much as a fifth of this page.
 */
export function Bars({
  bars,
  label,
  height,
  onChoose,
}: {
  bars: readonly Bar[];
  /** What the picture shows, for who does not see it. */
  label: string;
  /** Pixels. */
  height: number;
  onChoose?: (from: number, until: number) => void;
}): ReactNode {
  const { at, low, high, listeners } = useChoice(bars, onChoose);
  const most = Math.max(1, ...bars.map(totalOf));
  const step = WIDTH / Math.max(1, bars.length);
  return (
    <figure className="bars" data-choosable={onChoose !== undefined}>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        width="100%"
        height={height}
        aria-label={label}
        {...(onChoose === undefined
          ? { role: "img" }
          : {
              role: "slider",
              tabIndex: 0,
              "aria-valuemin": 0,
              "aria-valuemax": bars.length - 1,
              "aria-valuenow": high,
              "aria-valuetext": readingText(bars.slice(low, high + 1)),
            })}
        {...listeners}
      >
        {at !== undefined && (
          <rect className="chosen" x={low * step} y={0} width={(high - low + 1) * step} height={HEIGHT} />
        )}
        {bars.map((bar, index) => (
          <OneBar key={bar.from} bar={bar} x={(index + GAP / 2) * step} width={step * (1 - GAP)} most={most} />
        ))}
      </svg>
      <Axis bars={bars} />
      {at !== undefined && <Reading bars={bars.slice(low, high + 1)} place={(at + 0.5) / bars.length} />}
    </figure>
  );
}

/** The bar that is pointed at, and the bars from where drawing over them began to it. */
function useChoice(bars: readonly Bar[], onChoose: ((from: number, until: number) => void) | undefined) {
  const [at, setAt] = useState<number | undefined>();
  const [begun, setBegun] = useState<number | undefined>();
  const end = bars.length - 1;
  const here = Math.min(at ?? end, end);
  const [low, high] = [Math.min(here, begun ?? here), Math.max(here, begun ?? here)];
  const choose = () => {
    const [first, last] = [bars[low], bars[high]];
    setBegun(undefined);
    if (first !== undefined && last !== undefined) onChoose?.(first.from, last.until);
  };
  const pointed = ({ clientX, currentTarget }: PointerEvent<SVGSVGElement>) => {
    const { left, width } = currentTarget.getBoundingClientRect();
    return Math.max(0, Math.min(end, Math.floor(((clientX - left) / Math.max(1, width)) * bars.length)));
  };
  const listeners = {
    onPointerMove: (event: PointerEvent<SVGSVGElement>) => setAt(pointed(event)),
    onPointerLeave: () => begun === undefined && setAt(undefined),
    onPointerDown: (event: PointerEvent<SVGSVGElement>) => {
      if (onChoose === undefined) return;
      event.currentTarget.setPointerCapture(event.pointerId);
      setAt(pointed(event));
      setBegun(pointed(event));
    },
    onPointerUp: () => begun !== undefined && choose(),
    onPointerCancel: () => setBegun(undefined),
    onBlur: () => {
      setAt(undefined);
      setBegun(undefined);
    },
    onKeyDown: (event: KeyboardEvent) => {
      const to = { ArrowLeft: here - 1, ArrowRight: here + 1, Home: 0, End: end }[event.key];
      if (event.key === "Enter") choose();
      else if (to !== undefined) {
        event.preventDefault();
        setBegun(event.shiftKey ? (begun ?? here) : undefined);
        setAt(Math.max(0, Math.min(end, to)));
      }
    },
  };
  return { at, low, high, listeners };
}

function OneBar({ bar, x, width, most }: { bar: Bar; x: number; width: number; most: number }): ReactNode {
  let y = HEIGHT;
  return PARTS.map((part) => {
    const count = bar[part];
    // The smallest failure is seen too.
    const height = count === 0 ? 0 : Math.max(2, (count / most) * HEIGHT);
    y -= height;
    return height === 0 ? null : (
      <rect key={part} className={part} x={x} y={Math.max(0, y)} width={width} height={height} />
    );
  });
}

/** Some of the times below. */
function Axis({ bars }: { bars: readonly Bar[] }): ReactNode {
  const first = bars[0];
  const last = bars.at(-1);
  if (first === undefined || last === undefined) return null;
  const places = [0, 0.25, 0.5, 0.75].map((part) => bars[Math.floor(part * bars.length)] ?? first);
  const isLong = last.until - first.from > 2 * 86_400_000;
  return (
    <figcaption className="ticks number" aria-hidden="true">
      {places.map(({ from }) => (
        <span key={from}>{isLong ? dayText(from) : hourText(from)}</span>
      ))}
      <span>now</span>
    </figcaption>
  );
}

/** What the chosen bars count. */
function Reading({ bars, place }: { bars: readonly Bar[]; place: number }): ReactNode {
  const first = bars[0];
  const last = bars.at(-1);
  if (first === undefined || last === undefined) return null;
  const sum = (part: (typeof PARTS)[number]) => bars.reduce((before, bar) => before + bar[part], 0);
  return (
    <div
      className="reading"
      data-side={place > 0.5 ? "left" : "right"}
      style={{ "--place": `${place * 100}%` } as never}
    >
      <b className="number">
        {dayText(first.from)} {hourText(first.from)} – {hourText(last.until)}
      </b>
      {PARTS.toReversed().map((part) => (
        <span key={part} className={part}>
          <i /> {sum(part).toLocaleString("en")} {part}
        </span>
      ))}
    </div>
  );
}

/** The same in words. */
function readingText(bars: readonly Bar[]): string {
  const [first, last] = [bars[0], bars.at(-1)];
  if (first === undefined || last === undefined) return "";
  const counts = PARTS.map((part) => `${bars.reduce((before, bar) => before + bar[part], 0)} ${part}`);
  return `${dayText(first.from)} ${hourText(first.from)} to ${hourText(last.until)}: ${counts.join(", ")}`;
}

/** What the colours mean. */
export function BarsLegend(): ReactNode {
  return (
    <span className="aside legend">
      {PARTS.map((part) => (
        <span key={part} className={part}>
          <i /> {part}
        </span>
      ))}
    </span>
  );
}

function totalOf({ completed, failed, cancelled }: Bar): number {
  return completed + failed + cancelled;
}

function hourText(at: number): string {
  return new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
}

function dayText(at: number): string {
  return new Date(at).toLocaleDateString("en-GB", { weekday: "short", day: "numeric", month: "short" });
}
