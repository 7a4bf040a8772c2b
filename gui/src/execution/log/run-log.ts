import { queryOptions } from "@tanstack/react-query";
import { api } from "../../api/client.ts";
import type { EventRecord } from "../../api/types.ts";
import { logQuery, logSource } from "../events/use-event-log.ts";
import { traceEventOf } from "../traced/trace-event.ts";
import { type LogSection, logSectionsOf } from "./sections.ts";

/** Ends of tasks' runs: each has all lines of its run, so that together they are the whole log of what has ended. */
export const RUN_ENDS = "task.done";

/** What a long log is narrowed to. */
export interface RunFilter {
  step: string | undefined;
  isFailed: boolean;
}

/** The section of a run by the event of its end. */
export function sectionOfEnd(record: EventRecord): LogSection | undefined {
  const event = traceEventOf(record);
  return event === undefined ? undefined : logSectionsOf([event])[0];
}

/** Runs that are read at once where lines are looked through. */
const SCAN_PAGE = 200;

/** Looks through the runs that have ended, from the first to that of the event `until`; what was looked at is not kept. Rejects where they cannot be read. */
export async function scanRuns(
  executionId: string,
  filter: RunFilter,
  until: number,
  onRuns: (runs: readonly LogSection[]) => void,
  signal: AbortSignal,
): Promise<void> {
  const narrowed = logQuery({ type: RUN_ENDS, ...filter });
  for (let cursor: string | null = "0"; cursor !== null; ) {
    const query = { ...narrowed, after: cursor, limit: String(SCAN_PAGE) };
    const path = { execution_id: executionId };
    const answer: { events: EventRecord[]; next_cursor: string | null } = await api(
      "GET /api/executions/:execution_id/events",
      { params: path, query, signal },
    );
    const found = answer.events.filter(({ event_id }) => event_id <= until);
    onRuns(found.flatMap((record) => sectionOfEnd(record) ?? []));
    cursor = found.length < answer.events.length ? null : answer.next_cursor;
  }
}

/** The next run that ended after the event `from`, or the one before it, that the filter lets through; undefined where no run is left. */
export async function nearestRun(
  executionId: string,
  runs: RunFilter,
  from: number,
  by: 1 | -1,
): Promise<number | undefined> {
  const filter = { type: RUN_ENDS, ...runs };
  if (by === 1) return await firstOf((after) => logSource(executionId, filter).page(after, 1, NEVER), from);
  return await firstOf((before) => {
    const query = { ...logQuery(filter), order: "desc" as const, values: "short" as const, limit: "1" };
    return api("GET /api/executions/:execution_id/events", {
      params: { execution_id: executionId },
      query: { ...query, before: String(before) },
    });
  }, from);
}

const NEVER = new AbortController().signal;

/** The first event: where a filter finds little, a page may be empty and still not the last. */
async function firstOf(
  read: (from: number) => Promise<{ events: readonly EventRecord[]; next_cursor: string | null }>,
  from: number,
): Promise<number | undefined> {
  for (let cursor: string | null = String(from); cursor !== null; ) {
    const { events, next_cursor }: Awaited<ReturnType<typeof read>> = await read(Number(cursor));
    if (events[0] !== undefined) return events[0].event_id;
    cursor = next_cursor;
  }
  return undefined;
}

/** Events of an open command that are read for what its tasks write now. */
const OPEN_EVENTS = 200;

/** What the runs of a command that have not ended have written; read again as the execution's events come. */
export function openRuns(executionId: string, { command_id: commandId }: { command_id: string }) {
  return queryOptions({
    queryKey: ["execution", executionId, "open runs", commandId],
    queryFn: async ({ signal }) => {
      const query = { command_id: commandId, order: "desc" as const, limit: String(OPEN_EVENTS) };
      const path = { execution_id: executionId };
      const { events } = await api("GET /api/executions/:execution_id/events", { params: path, query, signal });
      const sections = logSectionsOf(events.flatMap((event) => traceEventOf(event) ?? []));
      return sections.filter(({ endId, lines }) => endId === undefined && lines.length > 0);
    },
  });
}
