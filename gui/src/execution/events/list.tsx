import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, type UIEvent, useEffect, useLayoutEffect, useRef } from "react";
import type { EventRecord } from "../../api/types.ts";
import { Status } from "../../parts/status.tsx";
import { clockText } from "../../parts/time.ts";
import type { EventLog } from "./log.ts";
import { eventText } from "./text.ts";

const ROW_PX = 28;
/** Rows that are ready beyond the edges: what a flick of the wheel passes before the next frame. */
const OVERSCAN = 30;

/** The rows in sight. What is not loaded yet has a row of the same height, so that nothing jumps and nothing is blank. */
export function EventList({
  log,
  chosen,
  target,
  isJump,
  isOpen,
  onChoose,
}: {
  log: EventLog;
  /** Number of the event that is looked at. */
  chosen: number | undefined;
  /** Number of the row that is to be in sight. */
  target: number | undefined;
  /** It is shown in the middle; otherwise nothing moves that need not. */
  isJump: boolean;
  /** More may come: at the end of the list the end is followed. */
  isOpen: boolean;
  onChoose(index: number): void;
}): ReactNode {
  const { scroller, rows, items, go, onScroll } = useVisibleEvents(log, target, isJump);
  return (
    <div className="stack tight">
      <section
        className="list"
        ref={scroller}
        aria-label="Events"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys
        tabIndex={0}
        onScroll={onScroll}
      >
        {log.size() === 0 && (
          <p className="quiet none">{log.isCounted() ? "No matching events. Change the filter." : "Loading …"}</p>
        )}
        <div style={{ height: rows.getTotalSize() }}>
          {items.map(({ index, start }) => (
            <div key={index} className="at" style={{ top: start }}>
              <EventRow
                event={log.at(index)}
                index={index}
                isChosen={index === chosen}
                onChoose={() => onChoose(index)}
              />
            </div>
          ))}
        </div>
      </section>
      <div className="row">
        <button type="button" onClick={() => go(0)}>
          To the start
        </button>
        <button type="button" onClick={() => go(rows.getTotalSize())}>
          To the end
        </button>
        {isOpen && <span className="quiet">At the end, the list follows what comes.</span>}
      </div>
    </div>
  );
}

/** The rows in sight. They are loaded, the target is brought into sight, and at the end of the list the end is followed. */
function useVisibleEvents(log: EventLog, target: number | undefined, isJump: boolean) {
  const scroller = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(false);
  const size = log.size();
  const rows = useVirtualizer({
    count: size,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: OVERSCAN,
  });
  const items = rows.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => log.show(first, last), [log, first, last]);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element !== null && isAtEnd.current && size > 0) element.scrollTop = element.scrollHeight;
  }, [size]);
  useEffect(() => {
    if (target !== undefined) rows.scrollToIndex(target, { align: isJump ? "center" : "auto" });
  }, [rows, target, isJump]);
  const onScroll = ({ currentTarget: { scrollTop, clientHeight, scrollHeight } }: UIEvent) => {
    isAtEnd.current = scrollTop + clientHeight >= scrollHeight - ROW_PX;
  };
  const go = (top: number) => {
    isAtEnd.current = top > 0;
    if (scroller.current !== null) scroller.current.scrollTop = top;
  };
  return { scroller, rows, items, go, onScroll };
}

function EventRow({
  event,
  index,
  isChosen,
  onChoose,
}: {
  event: EventRecord | undefined;
  index: number;
  isChosen: boolean;
  onChoose(): void;
}): ReactNode {
  if (event === undefined) {
    return (
      <div className="event-row waiting quiet" data-waiting="">
        <span className="number">#{index + 1}</span>
        <span>loading …</span>
      </div>
    );
  }
  return (
    <button
      type="button"
      className="event-row"
      aria-pressed={isChosen}
      data-event={event.event_id}
      tabIndex={isChosen ? 0 : -1}
      onClick={onChoose}
    >
      <span className="number quiet">{clockText(Date.parse(event.created_at))}</span>
      <span>
        <Status of={event.status} short /> {event.event_type}
      </span>
      <span>{event.node_type === "playbook" ? "" : nodeText(event)}</span>
      <span className="quiet wide">{eventText(event)}</span>
    </button>
  );
}

function nodeText({ node_id, node_name, node_type }: EventRecord): string {
  return node_type === "task" && node_name !== node_id ? `${node_id} / ${node_name}` : node_id;
}
