import { getRouteApi } from "@tanstack/react-router";
import { type ReactNode, useEffect, useLayoutEffect, useState } from "react";
import type { Execution } from "../../api/types.ts";
import { ProblemPanel } from "../../parts/problem.tsx";
import { useKeys } from "../../parts/use-keys.ts";
import { EventDetail } from "./detail.tsx";
import { EventFilters } from "./filters.tsx";
import { EventList } from "./list.tsx";
import type { EventLog } from "./log.ts";
import { useEventLog } from "./use-event-log.ts";
import "../../styles/log.css";

const route = getRouteApi("/executions/$executionId");

/** Where the event that is looked at stands in the list. */
interface Place {
  id: string;
  index: number;
  /** False where the filter leaves it out. */
  isThere: boolean;
  /** It was looked for, not chosen in the list: it may be far away. */
  isJump: boolean;
}

/** The log itself, however long: what is in sight is loaded. What is looked at stands in the address. */
export function Events({ execution }: { execution: Execution }): ReactNode {
  const { event: chosenId, type, step, worker, failed, q } = route.useSearch();
  const navigate = route.useNavigate();
  const { execution_id: executionId, last_event_id: lastEventId } = execution;
  const log = useEventLog(executionId, { type, step, worker, isFailed: failed === true, text: q }, lastEventId);
  const [place, setPlace] = usePlace(log, chosenId);
  const [awaited, setAwaited] = useState<{ log: EventLog; index: number }>();
  const next = awaited?.log === log ? awaited.index : undefined;
  const choose = (index: number) => {
    const event = log.at(index);
    // A row that the keys came to and that is not loaded yet is chosen when it is.
    setAwaited(
      event === undefined && index >= 0 && (index < log.size() || !log.isCounted()) ? { log, index } : undefined,
    );
    if (event === undefined) return;
    const id = String(event.event_id);
    setPlace({ id, index, isThere: true, isJump: false });
    void navigate({ search: chosen(id), replace: true, resetScroll: false });
  };
  const go = (by: 1 | -1) => choose(next !== undefined ? next + by : place === undefined ? 0 : place.index + by);
  useKeys(({ key }) => {
    if (key === "j") go(1);
    if (key === "k") go(-1);
  });
  const isThere = next !== undefined && log.at(next) !== undefined;
  // biome-ignore lint/correctness/useExhaustiveDependencies: once, when the row has come
  useLayoutEffect(() => {
    if (isThere) choose(next);
  }, [isThere, next]);
  const problem = log.problem();
  return (
    <div className="stack">
      <EventFilters execution={execution} log={log} />
      {problem !== undefined && (
        <ProblemPanel
          error={problem}
          again={() => {
            log.grow();
          }}
        />
      )}
      <div className="split event-log">
        <EventList
          log={log}
          chosen={place?.isThere === true && place.id === chosenId ? place.index : undefined}
          target={next ?? (place?.id === chosenId ? place?.index : undefined)}
          isJump={place?.isJump === true}
          isOpen={execution.ended_at === null}
          onChoose={choose}
        />
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keys */}
        <section className="panel scroll detail" aria-label="Event" tabIndex={0}>
          {chosenId === undefined ? (
            <p className="quiet">
              Choose an event to see all of it. <kbd>j</kbd> and <kbd>k</kbd> go through them.
            </p>
          ) : (
            <EventDetail
              key={chosenId}
              executionId={executionId}
              eventId={chosenId}
              isListed={place?.id !== chosenId || place.isThere}
            />
          )}
        </section>
      </div>
    </div>
  );
}

/** The address with an event chosen; who looks back goes to it. */
function chosen(event: string) {
  return <T extends { at?: string | undefined }>(before: T) => ({
    ...before,
    event,
    ...(before.at !== undefined && { at: event }),
  });
}

/** The event's position from the address, found again after the list changed. */
function usePlace(log: EventLog, chosenId: string | undefined) {
  const [place, setPlace] = useState<Place>();
  const [foundIn, setFoundIn] = useState<EventLog>();
  const isKnown = chosenId === undefined || (place?.id === chosenId && foundIn === log);
  useEffect(() => {
    if (isKnown) return undefined;
    let isOver = false;
    log.find(Number(chosenId)).then(
      ({ index, isThere }) => {
        if (isOver) return;
        setPlace({ id: chosenId, index, isThere, isJump: true });
        setFoundIn(log);
      },
      // The log says itself what is wrong with it.
      () => undefined,
    );
    return () => {
      isOver = true;
    };
  }, [log, chosenId, isKnown]);
  const choose = (chosen: Place) => {
    setPlace(chosen);
    setFoundIn(log);
  };
  // The number of a row in another list says nothing in this one.
  return [foundIn === log ? place : undefined, choose] as const;
}
