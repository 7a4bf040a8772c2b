import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import * as v from "valibot";
import type { ResultStore } from "../../ports/result-store.ts";
import { type EventAnswer as EventAnswerSchema, EventsAnswer } from "../../schema/api/events.ts";
import { CancelAnswer, ExecuteAnswer, ExecutionAnswer, ExecutionsAnswer } from "../../schema/api/executions.ts";
import { type PoolItem, PoolsAnswer } from "../../schema/api/workers.ts";
import type { EventRecord } from "../../schema/rules/event-record.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Json, JsonObject } from "../../schema/words/json.ts";
import { callServer } from "./client.ts";
import { paginate } from "./paginate.ts";
import type { ServerTarget } from "./target.ts";

/* The calls about executions and workers (interface specification, Execution), one function each. */

/** Longest that loading one result may take: it may be large. */
const RESULT_MS = 300_000;
/** Attempts of a start whose answer got lost, and the time between two. */
const START_ATTEMPTS = 3;
const START_RETRY_MS = 500;

/** What is to be executed. */
export interface ExecuteRequest {
  catalog_id: string;
  resource_kind: "playbook" | "agent";
  workload: JsonObject;
  target?: string;
}

/**
 * Starts an execution. A call that breaks off is made again under the same idempotency key, so that it starts one and not
 * two. Throws as `callServer` does.
 */
export async function executeOnServer(target: ServerTarget, body: ExecuteRequest, signal: AbortSignal) {
  const headers = { "idempotency-key": randomUUID() };
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await callServer(target, {
        ...{ method: "POST", path: "/api/execute", body, headers, answer: ExecuteAnswer, signal },
      });
    } catch (error) {
      if (attempt === START_ATTEMPTS || !isTransient(error)) throw error;
      await delay(START_RETRY_MS * attempt, undefined, { signal }).catch(() => undefined);
    }
  }
}

/** True for errors that a retry may cure: the server is unavailable, or too busy. */
export function isTransient(error: unknown): boolean {
  return error instanceof FlowError && TRANSIENT.has(error.code);
}

const TRANSIENT: ReadonlySet<string> = new Set([
  ...["SERVER_UNREACHABLE", "UNAVAILABLE", "INTERNAL", "TIMEOUT"],
  ...["queue_unavailable", "worker_unavailable", "ack_timeout"],
]);

/** One execution. Throws `FlowError` NOT_FOUND, and as `callServer` does. */
export function readExecution(target: ServerTarget, id: string, signal: AbortSignal) {
  return callServer(target, { method: "GET", path: `/api/executions/${id}`, answer: ExecutionAnswer, signal });
}

/** One page of executions, newest first. */
export function listExecutions(target: ServerTarget, query: URLSearchParams, signal: AbortSignal) {
  return callServer(target, { method: "GET", path: `/api/executions?${query}`, answer: ExecutionsAnswer, signal });
}

/** Where to begin in the log of an execution, and what of it. */
export interface EventsQuery {
  /** The events after this one. */
  after: number;
  type?: string;
  limit: number;
}

/** One page of an execution's events, oldest first. Throws `FlowError` NOT_FOUND, and as `callServer` does. */
export async function readEvents(
  target: ServerTarget,
  id: string,
  { after, type, limit }: EventsQuery,
  signal: AbortSignal,
): Promise<EventRecord[]> {
  const query = new URLSearchParams({ after: String(after), limit: String(limit) });
  if (type !== undefined) query.set("event_type", type);
  const path = `/api/executions/${id}/events?${query}`;
  const { events } = await callServer(target, { method: "GET", path, answer: EventsAnswer, signal });
  return events.map(recordOf);
}

/** Events that one call asks for. */
const PAGE = 500;

/** The log of an execution after an event, page by page, up to its present end. Throws as {@link readEvents} does. */
export async function* eventPages(
  target: ServerTarget,
  id: string,
  last: number,
  signal: AbortSignal,
): AsyncGenerator<EventRecord[]> {
  let after = last;
  for (;;) {
    const records = await readEvents(target, id, { after, limit: PAGE }, signal);
    yield records;
    after = records.at(-1)?.event_id ?? after;
    if (records.length < PAGE) return;
  }
}

/** An event as in the log: fields that do not apply may be null in an answer, and are absent in a record. */
export function recordOf(answer: v.InferOutput<typeof EventAnswerSchema>): EventRecord {
  const fields = Object.entries(answer).filter(([, value]) => value !== null);
  // The answer's schema says what a record has; its contents are checked when it is folded.
  return Object.fromEntries(fields) as EventRecord;
}

/** Cancels an execution, and its children unless `cascade` is false. An execution that has ended is returned as it is. */
export function cancelExecution(
  target: ServerTarget,
  id: string,
  body: { reason?: string; cascade?: boolean },
  signal: AbortSignal,
) {
  const path = `/api/executions/${id}/cancel`;
  return callServer(target, { method: "POST", path, body, answer: CancelAnswer, signal });
}

/** Every worker that a server knows. */
export function listWorkers(target: ServerTarget, signal: AbortSignal): Promise<PoolItem[]> {
  return paginate(async (cursor) => {
    const query = new URLSearchParams({ limit: String(PAGE), ...(cursor !== undefined && { cursor }) });
    const path = `/api/worker/pools?${query}`;
    const page = await callServer(target, { method: "GET", path, answer: PoolsAnswer, signal });
    return { items: page.items, next: page.next_cursor };
  });
}

/** The results that a server keeps. */
export function serverResults(target: ServerTarget, signal: AbortSignal): ResultStore {
  return {
    async load(ref) {
      const path = `/api/results/resolve?ref=${encodeURIComponent(ref)}`;
      const answer = await callServer(target, {
        method: "GET",
        path,
        answer: v.unknown(),
        signal,
        timeoutMs: RESULT_MS,
      });
      return answer as Json;
    },
  };
}
