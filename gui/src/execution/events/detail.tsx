import { queryOptions, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { api } from "../../api/client.ts";
import { addressOf, PUBLIC_PATH } from "../../api/session.ts";
import type { EventRecord } from "../../api/types.ts";
import { CopyButton } from "../../parts/copy.tsx";
import { JsonView } from "../../parts/json/view.tsx";
import { ProblemPanel } from "../../parts/problem.tsx";
import { Status } from "../../parts/status.tsx";
import { momentText } from "../../parts/time.ts";

const route = getRouteApi("/executions/$executionId");
/** How long a closed event stays cached, milliseconds: it may hold a large value. */
const KEPT_MS = 30_000;

/** One event with everything in it, and the ways to take it elsewhere. */
export function EventDetail({
  executionId,
  eventId,
  isListed,
}: {
  executionId: string;
  eventId: string;
  /** False where the filter leaves it out of the list beside it. */
  isListed: boolean;
}): ReactNode {
  const found = useQuery(oneEvent(executionId, eventId));
  if (found.isError) return <ProblemPanel error={found.error} again={() => void found.refetch()} />;
  if (found.data === undefined) return <p className="quiet">Loading …</p>;
  const event = found.data.event;
  if (event === null) return <p>This execution has no event {eventId}.</p>;
  return (
    <div className="stack">
      <h2 className="row">
        <Status of={event.status} short /> <span className="wrap">{event.event_type}</span>
      </h2>
      <p className="quiet row">
        <span className="number">{momentText(Date.parse(event.created_at))}</span>
        {event.node_type !== "playbook" && <StepLink step={event.node_id} />}
      </p>
      {!isListed && <p className="quiet">The filter leaves this event out of the list.</p>}
      <Copies executionId={executionId} event={event} />
      <JsonView label="All of it" value={event} />
    </div>
  );
}

function StepLink({ step }: { step: string }): ReactNode {
  return (
    <Link
      from="/executions/$executionId"
      to="."
      search={(before) => ({
        ...before,
        tab: undefined,
        step,
        in: undefined,
        command: undefined,
        iteration: undefined,
      })}
      className="wrap"
    >
      step {step}
    </Link>
  );
}

function Copies({ executionId, event }: { executionId: string; event: EventRecord }): ReactNode {
  const { type, step, worker, failed, q } = route.useSearch();
  const isFiltered = [type, step, worker, failed, q].some((value) => value !== undefined);
  const before = event.event_id - 1;
  const api = addressOf(`/api/executions/${executionId}/events?after=${before}&limit=1`);
  return (
    <div className="row">
      <CopyButton label="Copy link" text={linkTo(executionId, event.event_id)} />
      <CopyButton label="as JSON" text={JSON.stringify(event, null, 2)} />
      <CopyButton label="as CLI" text={`flow events ${executionId} --after ${before} --limit 1 --json`} />
      <CopyButton label="as curl" text={`curl -s '${location.origin}${api}'`} />
      {isFiltered && (
        <Link
          from="/executions/$executionId"
          to="."
          search={{ tab: "events" as const, event: String(event.event_id) }}
          className="button"
        >
          Among all events
        </Link>
      )}
    </div>
  );
}

/** A link that shows this event whatever else is filtered. */
function linkTo(executionId: string, eventId: number): string {
  return `${location.origin}${PUBLIC_PATH}/executions/${executionId}?tab=events&event=${eventId}`;
}

function oneEvent(executionId: string, eventId: string) {
  return queryOptions({
    queryKey: ["event", executionId, eventId],
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: KEPT_MS,
    queryFn: async ({ signal }) => {
      const query = { after: String(Math.max(0, Number(eventId) - 1)), limit: "1" };
      const path = { execution_id: executionId };
      const { events } = await api("GET /api/executions/:execution_id/events", { params: path, query, signal });
      return { event: events.find(({ event_id }) => String(event_id) === eventId) ?? null };
    },
  });
}
