import { setTimeout as delay } from "node:timers/promises";
import * as v from "valibot";
import { readMessages } from "../../platform/http/sse.ts";
import { EventAnswer } from "../../schema/api/events.ts";
import { EXECUTION_ROUTES, STREAM_ROUTES } from "../../schema/routes/executions.ts";
import type { EventRecord } from "../../schema/rules/event-record.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { callServer, openAnswer, unreachableReason } from "../server/client.ts";
import { eventPages, isTransient, recordOf } from "../server/executions-api.ts";
import type { ServerTarget } from "../server/target.ts";

/** Limits of time, in milliseconds. */
export const FOLLOW_MS = {
  /** A stream over a log that is not empty sends at once. If nothing arrives, a proxy buffers it. */
  first: 5_000,
  /** The server sends something at least every 15 s. */
  silence: 40_000,
  /** Between two reads of the log if streams do not get through. */
  poll: 1_000,
  /** Longest pause between two attempts to reach the server. */
  pauseMax: 5_000,
  /** Time without streams after a silent one, or one that was refused for want of room. */
  streamRest: 60_000,
  /** A shorter absence is not reported: the server restarts. */
  notice: 2_000,
  /** Longest wait for a server that is away. */
  away: 600_000,
};

/** How to follow. */
export interface FollowOptions {
  /** Begin after this event; default at the beginning. */
  after?: number;
  signal: AbortSignal;
  /** What a person should know: the server has been away for a while, or is there again; it has no room for another stream. */
  onNotice?(text: string): void;
  /** Limits of time that tests shorten. */
  ms?: typeof FOLLOW_MS;
}

/** True for an event that ends an execution. The server closes what a cancellation leaves open in the same write. */
export function isEnd({ event_type }: EventRecord): boolean {
  return (
    event_type === "playbook.completed" || event_type === "playbook.failed" || event_type === "execution.cancelled"
  );
}

/**
 * The events of an execution in order, each once, until it has ended: from the server's stream, which is taken up again
 * where it broke off, and from the log where streams do not come through. Throws `FlowError` NOT_FOUND, what the server
 * refuses, SERVER_UNREACHABLE when it is away for ten minutes, CANCELLED when the signal is aborted.
 */
export async function* followEvents(
  target: ServerTarget,
  executionId: string,
  options: FollowOptions,
): AsyncGenerator<EventRecord[]> {
  const { signal, ms = FOLLOW_MS } = options;
  const source: Source = { target, executionId, signal, ms, last: options.after ?? 0 };
  const connection = trackConnection(options, ms);
  let streamFrom = 0;
  let isCrowdTold = false;
  for (;;) {
    if (performance.now() >= streamFrom) {
      try {
        if (yield* newEvents(source, fromStream(source), connection.reachable)) return;
      } catch (error) {
        if (signal.aborted) throw error;
        // The log, read next, shows whether the stream, the execution or the server has the problem.
        const isCrowded = error instanceof FlowError && error.code === "RATE_LIMITED";
        if (isCrowded || (error instanceof FlowError && error.code === "TIMEOUT"))
          streamFrom = performance.now() + ms.streamRest;
        if (isCrowded && !isCrowdTold) options.onNotice?.(crowdedText(error));
        isCrowdTold ||= isCrowded;
      }
    }
    try {
      if (yield* newEvents(source, fromLog(source), connection.reachable)) return;
    } catch (error) {
      if (signal.aborted) throw error;
      connection.unreachable(error);
    }
    await delay(connection.pauseMs(), undefined, { signal }).catch((cause: unknown) => {
      throw new FlowError("CANCELLED", "interrupted while waiting for the server", { cause });
    });
  }
}

/** The server's reason without its advice, which is for programs. */
function crowdedText({ message }: FlowError): string {
  return `${message.split(". ", 1)[0] ?? message}: its log is read every second instead`;
}

interface Source {
  target: ServerTarget;
  executionId: string;
  signal: AbortSignal;
  ms: typeof FOLLOW_MS;
  /** The last event that was given. */
  last: number;
}

/** Yields events that were not yielded before; returns true when the execution has ended and its last event was yielded. */
async function* newEvents(
  source: Source,
  batches: AsyncIterable<EventRecord[] | "end">,
  onBatch: () => void,
): AsyncGenerator<EventRecord[], boolean> {
  for await (const batch of batches) {
    onBatch();
    if (batch === "end") return true;
    const records = batch.filter((record) => record.event_id > source.last);
    const last = records.at(-1)?.event_id ?? source.last;
    const isOver = records.some(isEnd);
    // `last` moves only after everything has arrived: a connection that breaks here resumes before this batch.
    if (isOver) {
      for await (const rest of eventPages(source.target, source.executionId, last, source.signal))
        records.push(...rest);
    }
    source.last = records.at(-1)?.event_id ?? source.last;
    if (records.length > 0) yield records;
    if (isOver) return true;
  }
  return false;
}

/** The server's stream, from the last event on. Throws `FlowError` TIMEOUT when nothing comes through. */
async function* fromStream({ target, executionId, signal, ms, last }: Source): AsyncGenerator<EventRecord[] | "end"> {
  const silence = new AbortController();
  const onSilence = () => silence.abort(new FlowError("TIMEOUT", "The server's stream of events says nothing"));
  let timer = setTimeout(onSilence, last === 0 ? ms.first : ms.silence);
  const watchSilence = async function* (chunks: AsyncIterable<Uint8Array>) {
    for await (const chunk of chunks) {
      clearTimeout(timer);
      yield chunk;
      timer = setTimeout(onSilence, ms.silence);
    }
  };
  const input = { params: { execution_id: executionId }, headers: { "last-event-id": String(last) } };
  try {
    const limited = AbortSignal.any([signal, silence.signal]);
    const { parts } = await openAnswer(target, STREAM_ROUTES.stream, { ...input, signal: limited });
    for await (const messages of readMessages(watchSilence(parts))) {
      yield messages.filter(({ event }) => event !== "end").map(({ data }) => readRecord(data));
      if (messages.some(({ event }) => event === "end")) yield "end";
    }
  } finally {
    clearTimeout(timer);
  }
}

function readRecord(data: string): EventRecord {
  try {
    return recordOf(v.parse(EventAnswer, JSON.parse(data)));
  } catch (cause) {
    throw new FlowError("SERVER_UNREACHABLE", "The server's stream holds something that is not an event", { cause });
  }
}

/** The log from the last event on, page by page; `end` where there is no more to come. */
async function* fromLog(source: Source): AsyncGenerator<EventRecord[] | "end"> {
  const begin = source.last;
  yield* eventPages(source.target, source.executionId, source.last, source.signal);
  // With `after` at or behind the last event, the log has no end event to give.
  if (source.last !== begin || begin === 0) return;
  const { status } = await callServer(source.target, EXECUTION_ROUTES.detail, {
    params: { execution_id: source.executionId },
    signal: source.signal,
  });
  if (status !== "COMPLETED" && status !== "FAILED" && status !== "CANCELLED") return;
  // It may have ended between the two answers.
  yield* eventPages(source.target, source.executionId, source.last, source.signal);
  yield "end";
}

/** Tracks whether the server answers, and how long to wait before the next attempt. */
function trackConnection({ onNotice }: FollowOptions, ms: typeof FOLLOW_MS) {
  let since: number | undefined;
  let isReported = false;
  let pause = ms.poll;
  return {
    pauseMs: () => pause,
    reachable() {
      if (isReported) onNotice?.("The server is there again");
      since = undefined;
      isReported = false;
      pause = ms.poll;
    },
    /** Throws errors that waiting does not cure, and any after the longest absence. */
    unreachable(error: unknown) {
      if (!isTransient(error) || !(error instanceof FlowError)) throw error;
      const now = performance.now();
      if (since !== undefined) pause = Math.min(ms.pauseMax, pause * 2);
      since ??= now;
      if (now - since > ms.away) throw error;
      if (isReported || now - since < ms.notice) return;
      isReported = true;
      onNotice?.(`${unreachableReason(error)}; trying again`);
    },
  };
}
