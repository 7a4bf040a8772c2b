import { useEffect, useMemo, useSyncExternalStore } from "react";
import { api } from "../../api/client.ts";
import { createEventLog, type EventLog, type LogSource } from "./log.ts";
import { PAGE } from "./pages.ts";

/** What a log is narrowed to; the server looks for it. */
export interface LogFilter {
  type?: string | undefined;
  step?: string | undefined;
  worker?: string | undefined;
  isFailed?: boolean | undefined;
  /** In the type, the step, the task, the worker or the error. */
  text?: string | undefined;
}

/** An execution's log. `lastEventId` is the newest event that is known of: the log goes on when it changes. */
export function useEventLog(executionId: string, filter: LogFilter, lastEventId: number | undefined): EventLog {
  const { type, step, worker, isFailed, text } = filter;
  const log = useMemo(
    () => createEventLog(logSource(executionId, { type, step, worker, isFailed, text })),
    [executionId, type, step, worker, isFailed, text],
  );
  useEffect(() => log.open(), [log]);
  useEffect(() => {
    if (lastEventId !== undefined) log.grow();
  }, [log, lastEventId]);
  useSyncExternalStore(log.subscribe, log.version);
  return log;
}

/** A filter in the words of the API. */
export function logQuery({ type, step, worker, isFailed, text }: LogFilter) {
  return {
    ...(type !== undefined && { event_type: type }),
    ...(step !== undefined && { step }),
    ...(worker !== undefined && { worker }),
    ...(isFailed === true && { failed: "true" as const }),
    ...(text !== undefined && { q: text }),
  };
}

/** Reads an execution's log, without long values. */
export function logSource(executionId: string, filter: LogFilter = {}): LogSource {
  const query = logQuery(filter);
  const path = { execution_id: executionId };
  return {
    marks: (after, counted, signal) =>
      api("GET /api/executions/:execution_id/events/marks", {
        params: path,
        query: { ...query, after: String(after), counted: String(counted), every: String(PAGE) },
        signal,
      }),
    page: (after, limit, signal) =>
      api("GET /api/executions/:execution_id/events", {
        params: path,
        query: { ...query, after: String(after), limit: String(limit), values: "short" },
        signal,
      }),
  };
}
