import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { api } from "../../api/client.ts";
import type { EventRecord } from "../../api/types.ts";

/** Events of a page, and pages that are kept: a loop may have a hundred thousand. */
const PAGE = 500;
const PAGES_MAX = 8;

/** What narrows the events of a step. */
export interface StepEventsQuery {
  executionId: string;
  step: string;
  /** Only those of one command. */
  commandId?: string | undefined;
  /** Only ends of iterations that failed. */
  isFailed?: boolean;
}

/** The events of a step, the newest page first; long values are left out and read one by one. */
export function stepEvents({ executionId, step, commandId, isFailed = false }: StepEventsQuery) {
  return infiniteQueryOptions({
    queryKey: ["execution", executionId, "step", step, commandId ?? "", isFailed],
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam, signal }) => {
      const query = {
        step,
        order: "desc" as const,
        values: "short" as const,
        limit: String(PAGE),
        ...(commandId !== undefined && { command_id: commandId }),
        ...(isFailed && { event_type: "loop.iteration.failed" }),
        ...(pageParam !== undefined && { cursor: pageParam }),
      };
      return api("GET /api/executions/:execution_id/events", { params: { execution_id: executionId }, query, signal });
    },
    getNextPageParam: (page) => page.next_cursor,
    maxPages: PAGES_MAX,
  });
}

/** Pages of {@link stepEvents} in the order of the log. */
export function inOrder(pages: readonly { events: EventRecord[] }[] | undefined): EventRecord[] {
  const events = pages?.flatMap((page) => page.events) ?? [];
  return events.sort((one, other) => one.event_id - other.event_id);
}

/** One event with all its values. */
export function wholeEvent(executionId: string, eventId: number) {
  return queryOptions({
    queryKey: ["event", executionId, eventId],
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 60_000,
    queryFn: async ({ signal }) => {
      const query = { after: String(eventId - 1), limit: "1" };
      const path = { execution_id: executionId };
      const page = await api("GET /api/executions/:execution_id/events", { params: path, query, signal });
      return page.events.find((event) => event.event_id === eventId) ?? null;
    },
  });
}
