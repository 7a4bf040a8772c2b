import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type * as v from "valibot";
import type { ResultStore } from "../../ports/result-store.ts";
import type { EventAnswer } from "../../schema/api/events.ts";
import type { PoolItem } from "../../schema/api/workers.ts";
import type { AnswerOf, RouteContract } from "../../schema/routes/contract.ts";
import { EXECUTE_ROUTES, EXECUTION_ROUTES } from "../../schema/routes/executions.ts";
import type { RouteInput } from "../../schema/routes/request.ts";
import { RESULT_ROUTES } from "../../schema/routes/results.ts";
import { WORKER_ROUTES } from "../../schema/routes/workers.ts";
import type { EventRecord } from "../../schema/rules/event-record.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type CallOptions, callServer } from "./client.ts";
import { everyItem } from "./paginate.ts";
import type { ServerTarget } from "./target.ts";

/* What takes more than one call: starts that are made again, logs and lists in pages. */

/** Longest that loading one result may take: it may be large. */
const RESULT_MS = 300_000;
/** Attempts of a start whose answer got lost, and the time between two. */
const START_ATTEMPTS = 3;
const START_RETRY_MS = 500;

/**
 * Starts an execution. A call that breaks off is made again under the same idempotency key, so that it starts one and not
 * two. Throws as `callServer` does.
 */
export async function executeOnServer(
  target: ServerTarget,
  input: RouteInput<typeof EXECUTE_ROUTES.execute>,
  signal: AbortSignal,
) {
  return await startOnServer(target, EXECUTE_ROUTES.execute, input, signal);
}

/**
 * {@link executeOnServer} by any call that starts something under an idempotency key. `timeoutMs`: time limit of an attempt, in
 * milliseconds, 30 s by default.
 */
export async function startOnServer<C extends RouteContract>(
  target: ServerTarget,
  contract: C,
  input: RouteInput<C>,
  signal: AbortSignal,
  timeoutMs?: number,
): Promise<AnswerOf<C>> {
  const call = { headers: { "idempotency-key": randomUUID() }, signal, ...defined({ timeoutMs }) };
  const withHeaders = <T>(given: T): T & CallOptions => ({ ...given, ...call }) as T & CallOptions;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await callServer(target, contract, withHeaders(input));
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

/** Where to begin in the log of an execution, and what of it. */
export interface EventsQuery {
  /** The events after this one. */
  after: number;
  type?: string | undefined;
  limit: number;
}

/** One page of an execution's events, oldest first. Throws `FlowError` NOT_FOUND, and as `callServer` does. */
export async function readEvents(
  target: ServerTarget,
  id: string,
  { after, type, limit }: EventsQuery,
  signal: AbortSignal,
): Promise<EventRecord[]> {
  const query = { after, event_type: type, limit };
  const input = { params: { execution_id: id }, query, signal };
  const { events } = await callServer(target, EXECUTION_ROUTES.events, input);
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
export function recordOf(answer: v.InferOutput<typeof EventAnswer>): EventRecord {
  const fields = Object.entries(answer).filter(([, value]) => value !== null);
  // The answer's schema says what a record has; its contents are checked when it is folded.
  return Object.fromEntries(fields) as EventRecord;
}

/** Every worker that a server knows. */
export function listWorkers(target: ServerTarget, signal: AbortSignal): Promise<PoolItem[]> {
  return everyItem(target, WORKER_ROUTES.pools, { signal }, (page) => page.items);
}

/** The results that a server keeps. */
export function serverResults(target: ServerTarget, signal: AbortSignal): ResultStore {
  return {
    load: (ref) => callServer(target, RESULT_ROUTES.resolveApi, { query: { ref }, signal, timeoutMs: RESULT_MS }),
  };
}
