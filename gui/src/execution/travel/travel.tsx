import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { ChevronLeft, ChevronRight, History } from "lucide-react";
import { type ReactNode, useEffect, useMemo, useState } from "react";
import { api } from "../../api/client.ts";
import type { Execution, ExecutionState } from "../../api/types.ts";
import { JsonView } from "../../parts/json/view.tsx";
import { ProblemPanel } from "../../parts/problem.tsx";
import { Status } from "../../parts/status.tsx";
import { durationText, momentText } from "../../parts/time.ts";
import type { EventLog } from "../events/log.ts";
import { useEventLog } from "../events/use-event-log.ts";
import "../../styles/travel.css";

const route = getRouteApi("/executions/$executionId");
/** A place is gone to when the slider has rested there for so long, milliseconds: each is a call. */
const REST_MS = 120;
const NO_FILTER = {};

/** An execution as it was after an event of its log; undefined while that is read, or where the page shows the present. */
export function usePast(execution: Execution | undefined, at: string | undefined) {
  const id = execution?.execution_id ?? "";
  const state = useQuery({
    queryKey: ["execution-state", id, at],
    queryFn: ({ signal }) =>
      api("GET /api/executions/:execution_id/state", {
        params: { execution_id: id },
        query: at === undefined ? {} : { at },
        signal,
      }),
    enabled: execution !== undefined && at !== undefined,
    placeholderData: keepPreviousData,
    // The past does not change.
    staleTime: Number.POSITIVE_INFINITY,
  });
  const past = at === undefined || execution === undefined || state.data === undefined ? undefined : state.data;
  const then = useMemo(
    () => (past === undefined || execution === undefined ? execution : asOf(execution, past)),
    [execution, past],
  );
  const moment = useMemo(
    () => (past === undefined ? undefined : { event: past.event_id, at: Date.parse(past.at) }),
    [past],
  );
  return { state, past, then, moment };
}

/** The execution with what was known of it then: what ran is drawn up to that moment. */
function asOf(execution: Execution, past: ExecutionState): Execution {
  const { status, progress, error, steps, arcs, commands, workload, next_retry, at } = past;
  const { paused: _paused, ...same } = execution;
  return {
    ...same,
    ...{ status, progress, error, arcs, commands, workload, next_retry },
    steps: steps.map((step) =>
      (step.status === "RUNNING" || step.status === "WAITING") && step.ended_at === null
        ? { ...step, ended_at: at }
        : step,
    ),
    ended_at: past.ended_at ?? at,
    result: past.ended_at === null ? null : execution.result,
  };
}

/** The button that begins to look back: from then on all views show the execution as it was after the chosen event. */
export function ReplayButton({ execution }: { execution: Execution }): ReactNode {
  const go = useGo();
  const newest = execution.last_event_id;
  return (
    <button
      type="button"
      className="quiet"
      title="Show it as it was after any event of its log"
      disabled={newest === undefined}
      onClick={() => go(String(newest))}
    >
      <History className="icon" aria-hidden="true" /> Replay the run
    </button>
  );
}

function useGo() {
  const navigate = route.useNavigate();
  return (event: string | undefined) =>
    void navigate({ search: (before) => ({ ...before, at: event, event }), replace: true, resetScroll: false });
}

/** The slider over the log: trace, details, graph, log and values show the execution as it was after the chosen event. */
export function Replay({
  execution,
  past: { past, state },
  at,
}: {
  execution: Execution;
  past: ReturnType<typeof usePast>;
  at: string;
}): ReactNode {
  const go = useGo();
  const log = useEventLog(execution.execution_id, NO_FILTER, execution.last_event_id);
  const [index, setIndex] = usePosition(log, at, go);
  const size = log.size();
  const event = index === undefined ? undefined : log.at(index);
  const step = (by: number) => setIndex(Math.min(size - 1, Math.max(0, (index ?? 0) + by)));
  const name = event === undefined ? undefined : `${event.event_type} ${event.node_name}`;
  return (
    <section className="card travel" aria-label="Replay">
      <div className="row">
        <button
          type="button"
          aria-label="One event back"
          disabled={!(index !== undefined && index > 0)}
          onClick={() => step(-1)}
        >
          <ChevronLeft className="icon" aria-hidden="true" />
        </button>
        <input
          type="range"
          className="grow"
          aria-label="Place in the log"
          aria-valuetext={event === undefined ? undefined : `event ${(index ?? 0) + 1} of ${size}: ${name}`}
          min={0}
          max={Math.max(0, size - 1)}
          value={index ?? 0}
          disabled={index === undefined}
          onChange={({ target }) => setIndex(Number(target.value))}
        />
        <button
          type="button"
          aria-label="One event on"
          disabled={!(index !== undefined && index < size - 1)}
          onClick={() => step(1)}
        >
          <ChevronRight className="icon" aria-hidden="true" />
        </button>
        <button type="button" onClick={() => go(undefined)}>
          Back to now
        </button>
      </div>
      {state.isError && <ProblemPanel error={state.error} again={() => void state.refetch()} />}
      <p className="row" aria-live="polite">
        {past !== undefined && <Status of={past.status} />}
        <span>
          {index === undefined ? "Finding the place …" : `Event ${index + 1} of ${size}`}
          {name !== undefined && <code className="wrap"> {name}</code>}
        </span>
        {past !== undefined && (
          <span className="quiet">
            {momentText(Date.parse(past.at))}, {sinceStart(execution, past)} after its start
          </span>
        )}
      </p>
      {past !== undefined && Object.keys(past.variables).length > 0 && (
        <JsonView label="Variables" value={past.variables} />
      )}
    </section>
  );
}

function sinceStart({ started_at }: Execution, { at }: ExecutionState): string {
  return durationText(Math.max(0, Date.parse(at) - Date.parse(started_at)));
}

/** Where the event of the address stands in the log; moving it changes the address once it rests. */
function usePosition(log: EventLog, at: string, go: (event: string) => void) {
  const [place, setPlace] = useState<{ at: string; index: number }>();
  const [wanted, setWanted] = useState<number>();
  useEffect(() => {
    if (place?.at === at) return undefined;
    let isOver = false;
    log.find(Number(at)).then(
      ({ index }) => {
        if (!isOver) setPlace({ at, index });
      },
      // The log says itself what is wrong with it.
      () => undefined,
    );
    return () => {
      isOver = true;
    };
  }, [log, at, place]);
  const event = wanted === undefined ? undefined : log.at(wanted);
  useEffect(() => {
    if (wanted === undefined) return undefined;
    log.show(wanted, wanted);
    if (event === undefined) return undefined;
    const timer = setTimeout(() => {
      const id = String(event.event_id);
      setPlace({ at: id, index: wanted });
      setWanted(undefined);
      if (id !== at) go(id);
    }, REST_MS);
    return () => clearTimeout(timer);
  }, [log, wanted, event, at, go]);
  const index = wanted ?? (place?.at === at ? place.index : place?.index);
  return [index, setWanted] as const;
}
