import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import type { EventRecord, Execution, Step } from "../../api/types.ts";
import { useNow } from "../../parts/now.tsx";
import type { EventLog } from "../events/log.ts";
import { PAGE } from "../events/pages.ts";
import { useEventLog } from "../events/use-event-log.ts";
import { LaneRow, Legend, laneText } from "./lane-row.tsx";
import { type Lane, laneOf, spanOf, wholeLane } from "./lanes.ts";
import { Ruler, type Stretch } from "./ruler.tsx";
import { useZoom } from "./use-zoom.ts";
import "../../styles/log.css";

const ROW_PX = 28;
/** Pages of events that are loaded for the visible range: 3,000 events. A longer range is drawn as whole bars. */
const PAGES_MAX = 6;
/**
 * Workers report the end of tasks by their own clocks: events within so many milliseconds around a range are searched too, the
 * most of these that are few enough. A busy log has thousands in a second.
 */
const CLOCKS_MS = [2_000, 200, 20];

/** When each step ran. Of a long log only the events of the visible range are loaded. */
export function Timeline({ execution }: { execution: Execution }): ReactNode {
  const { execution_id: executionId, last_event_id: lastEventId } = execution;
  const tick = useNow();
  const start = Date.parse(execution.started_at);
  const end = Math.max(start + 1, execution.ended_at === null ? tick : Date.parse(execution.ended_at));
  const { view, zoom, by, all, isZoomed } = useZoom(start, end);
  const log = useEventLog(executionId, {}, lastEventId);
  const steps = useMemo(
    () =>
      execution.steps.filter((step) => {
        const span = spanOf(step, end);
        return span !== undefined && span.to >= view.from && span.from <= view.to;
      }),
    [execution.steps, end, view.from, view.to],
  );
  return (
    <div className="stack timeline">
      <div className="row spread">
        <Legend />
        <div className="row">
          <button type="button" aria-label="Zoom in" onClick={() => by(0.5)}>
            +
          </button>
          <button type="button" aria-label="Zoom out" disabled={!isZoomed} onClick={() => by(2)}>
            −
          </button>
          <button type="button" disabled={!isZoomed} onClick={all}>
            All of it
          </button>
        </div>
      </div>
      <Lanes steps={steps} log={log} view={view} start={start} end={end} onZoom={zoom} onZoomBy={by} />
    </div>
  );
}

interface LanesProps {
  steps: readonly Step[];
  log: EventLog;
  view: Stretch;
  start: number;
  end: number;
  onZoom(stretch: Stretch): void;
  onZoomBy(factor: number, move?: number): void;
}

function Lanes({ steps, log, view, start, end, onZoom, onZoomBy }: LanesProps): ReactNode {
  const scroller = useRef<HTMLDivElement>(null);
  const [hovered, setHovered] = useState<Lane>();
  const rows = useVirtualizer({
    count: steps.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 10,
  });
  const items = rows.getVirtualItems();
  const shown = items.map(({ index }) => steps[index]).filter((step) => step !== undefined);
  const { events, isTooLong, hull } = useEventsOf(log, shown, view, end);
  return (
    <>
      <div className="row spread">
        <p className="quiet told" role="status">
          {hovered !== undefined ? laneText(hovered) : steps.length === 0 ? "No step was under way here." : ""}
          {hovered === undefined &&
            steps.length > 0 &&
            (isTooLong
              ? "Too many events for this stretch: zoom in to see what each step waited for."
              : "Point at a bar to read it; choose it to look closer. + and − zoom, ← and → move.")}
        </p>
        <button type="button" disabled={shown.length === 0} onClick={() => onZoom(hull)}>
          Fit the rows in sight
        </button>
      </div>
      <Ruler view={view} start={start} onZoom={onZoom} />
      <section
        className="list"
        ref={scroller}
        aria-label="Timeline"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys
        tabIndex={0}
        onKeyDown={({ key }) => {
          if (key === "+") onZoomBy(0.5);
          if (key === "-") onZoomBy(2);
          if (key === "ArrowLeft") onZoomBy(1, -0.25);
          if (key === "ArrowRight") onZoomBy(1, 0.25);
        }}
      >
        <div style={{ height: rows.getTotalSize() }}>
          {items.map(({ index, start: top }) => {
            const step = steps[index];
            if (step === undefined) return null;
            const own = isTooLong ? undefined : events.get(step.name);
            const lane = own === undefined ? wholeLane(step, end) : laneOf(step, own, view, end);
            return (
              <div key={step.name} className="at" style={{ top }}>
                <LaneRow lane={lane} view={view} onHover={setHovered} onZoom={onZoom} />
              </div>
            );
          })}
        </div>
      </section>
    </>
  );
}

/** The events of the steps in sight, loaded where they are few enough. */
function useEventsOf(log: EventLog, shown: readonly Step[], view: Stretch, end: number) {
  const spans = shown.map((step) => spanOf(step, end)).filter((span) => span !== undefined);
  const hull = { from: Math.min(...spans.map((span) => span.from)), to: Math.max(...spans.map((span) => span.to)) };
  const from = Math.max(view.from, hull.from);
  const to = Math.min(view.to, hull.to);
  const stretches = CLOCKS_MS.map((clocksMs) => log.pagesBetween(from - clocksMs, to + clocksMs));
  const found = stretches.find(({ first, last }) => last - first < PAGES_MAX);
  const { first, last } = found ?? { first: 0, last: 0 };
  const isTooLong = found === undefined || !log.isCounted();
  const version = log.version();
  useEffect(() => {
    if (!isTooLong) log.show(first * PAGE + PAGE / 2, last * PAGE + PAGE / 2 - 1);
  }, [log, first, last, isTooLong]);
  const events = useMemo(() => {
    const byStep = new Map<string, EventRecord[]>();
    if (isTooLong || version < 0) return byStep;
    for (let index = first * PAGE; index < (last + 1) * PAGE; index += 1) {
      const event = log.at(index);
      if (event === undefined || event.node_type === "playbook") continue;
      const list = byStep.get(event.node_id);
      if (list === undefined) byStep.set(event.node_id, [event]);
      else list.push(event);
    }
    return byStep;
  }, [log, version, first, last, isTooLong]);
  return { events, isTooLong, hull };
}
