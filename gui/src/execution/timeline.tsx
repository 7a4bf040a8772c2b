import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useMemo, useRef } from "react";
import type { Execution } from "../api/types.ts";
import { executionEvents } from "../app/queries.ts";
import { useNow } from "../parts/now.tsx";
import { durationText } from "../parts/time.ts";
import { attemptsOf } from "./attempts.ts";
import { type Lane, lanesOf } from "./lanes.ts";

const ROW_PX = 28;

/** When what ran: waiting for a worker light, running full, between two runs of a task striped. */
export function Timeline({ execution }: { execution: Execution }): ReactNode {
  const pages = useInfiniteQuery(executionEvents(execution.execution_id, undefined));
  const now = useNow();
  const from = Date.parse(execution.started_at);
  const to = Math.max(from + 1, execution.ended_at === null ? now : Date.parse(execution.ended_at));
  const events = useMemo(() => pages.data?.pages.flatMap((page) => page.events) ?? [], [pages.data]);
  const lanes = useMemo(
    () => lanesOf(execution.steps, attemptsOf(events, undefined), events, to),
    [execution.steps, events, to],
  );
  const scroller = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: lanes.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 15,
  });
  return (
    <div className="stack">
      <p className="quiet row">
        <span>0</span>
        <span>{durationText(to - from)}</span>
        <span>light: waits for a worker; full: runs; red: failed; striped: waits to try again</span>
        {pages.hasNextPage && (
          <button type="button" onClick={() => void pages.fetchNextPage()}>
            Details of more events
          </button>
        )}
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys */}
      <section className="list" ref={scroller} aria-label="Timeline" tabIndex={0}>
        <div style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map(({ index, start }) => {
            const lane = lanes[index];
            return lane === undefined ? null : (
              <div key={lane.step} className="at" style={{ top: start }}>
                <LaneRow lane={lane} from={from} to={to} />
              </div>
            );
          })}
        </div>
      </section>
    </div>
  );
}

function LaneRow({ lane, from, to }: { lane: Lane; from: number; to: number }): ReactNode {
  const share = (ms: number) => `${(100 * ms) / (to - from)}%`;
  return (
    <div className="lane">
      <Link
        from="/executions/$executionId"
        to="."
        search={(before) => ({ ...before, tab: "steps" as const, step: lane.step })}
        className="name"
      >
        {lane.step}
      </Link>
      <div className="track">
        {lane.pieces.map((piece) => (
          <span
            key={`${piece.kind}${piece.from}`}
            className={`piece ${piece.kind} tone-${piece.tone}`}
            title={`${piece.kind}, ${durationText(piece.to - piece.from)}`}
            style={{ left: share(piece.from - from), width: share(piece.to - piece.from) }}
          />
        ))}
      </div>
    </div>
  );
}
