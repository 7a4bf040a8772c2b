import { useInfiniteQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useMemo, useRef } from "react";
import type { EventRecord, Execution } from "../api/types.ts";
import { executionEvents } from "../app/queries.ts";
import { JsonView } from "../parts/json-view.tsx";
import { ProblemPanel } from "../parts/problem.tsx";
import { Status } from "../parts/status.tsx";
import { clockText } from "../parts/time.ts";
import { eventText } from "./event-text.ts";

const route = getRouteApi("/executions/$executionId");
const ROW_PX = 28;

/** The log itself, loaded as one scrolls; the event that is looked at stands in the address. */
export function Events({ execution }: { execution: Execution }): ReactNode {
  const { event: chosenId, type, step } = route.useSearch();
  const navigate = route.useNavigate();
  const pages = useInfiniteQuery(executionEvents(execution.execution_id, type));
  const all = useMemo(() => pages.data?.pages.flatMap(({ events }) => events) ?? [], [pages.data]);
  const events = useMemo(() => (step === undefined ? all : all.filter(({ node_id }) => node_id === step)), [all, step]);
  const types = useMemo(() => [...new Set(all.map(({ event_type }) => event_type))].sort(), [all]);
  const chosen = events.find(({ event_id }) => String(event_id) === chosenId);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = pages;
  return (
    <div className="stack">
      <div className="row">
        <label>
          Type
          <select
            value={type ?? ""}
            onChange={(change) =>
              void navigate({
                search: (before) => ({ ...before, type: change.target.value || undefined }),
                replace: true,
              })
            }
          >
            <option value="">all</option>
            {type !== undefined && !types.includes(type) && <option value={type}>{type}</option>}
            {types.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        {step !== undefined && (
          <button
            type="button"
            onClick={() => void navigate({ search: (before) => ({ ...before, step: undefined }), replace: true })}
          >
            Step {step} ✕
          </button>
        )}
        <span className="quiet">
          {events.length}
          {hasNextPage ? " loaded" : ""} events
        </span>
      </div>
      {pages.isError && <ProblemPanel error={pages.error} again={() => void pages.refetch()} />}
      <div className="split">
        <EventList
          events={events}
          chosenId={chosenId}
          onChoose={(event) =>
            void navigate({ search: (before) => ({ ...before, event: String(event.event_id) }), replace: true })
          }
          onEnd={() => {
            if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
          }}
        />
        <section className="panel scroll">
          {chosen === undefined ? (
            <p className="quiet">Choose an event to see all of it.</p>
          ) : (
            <JsonView key={chosen.event_id} label={chosen.event_type} value={chosen} />
          )}
        </section>
      </div>
    </div>
  );
}

function EventList({
  events,
  chosenId,
  onChoose,
  onEnd,
}: {
  events: readonly EventRecord[];
  chosenId: string | undefined;
  onChoose(event: EventRecord): void;
  onEnd(): void;
}): ReactNode {
  const scroller = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: events.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 20,
  });
  const items = rows.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (last >= events.length - 50) onEnd();
  }, [last, events.length, onEnd]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys
    <section className="list" ref={scroller} aria-label="Events" tabIndex={0}>
      <div style={{ height: rows.getTotalSize() }}>
        {items.map(({ index, start }) => {
          const event = events[index];
          if (event === undefined) return null;
          return (
            <div key={event.event_id} className="at" style={{ top: start }}>
              <button
                type="button"
                className="event-row"
                aria-pressed={String(event.event_id) === chosenId}
                onClick={() => onChoose(event)}
              >
                <span className="number quiet">{clockText(Date.parse(event.created_at))}</span>
                <span>
                  <Status of={event.status} short /> {event.event_type}
                </span>
                <span>{event.node_type === "playbook" ? "" : event.node_name}</span>
                <span className="quiet wide">{eventText(event)}</span>
              </button>
            </div>
          );
        })}
      </div>
    </section>
  );
}
