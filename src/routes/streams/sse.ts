import type { Context } from "hono";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { maskSealed } from "../../schema/words/sealed.ts";
import { type Listening, listening } from "../http/client-signal.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import type { StreamPlaces } from "./places.ts";

/** One event of a stream (HTML standard). */
export interface ServerSentEvent {
  event?: string;
  /** What a client that reconnects sends as `Last-Event-ID`. */
  id?: string;
  data: unknown;
}

/** What surrounds a stream. */
export interface StreamRoom {
  /** Aborted when the server begins to stop. */
  stopping: AbortSignal;
  /** Where an open stream counts; undefined for one that is never refused. */
  places: StreamPlaces | undefined;
}

/** Proxies may take a stream that is silent for longer than this for dead. */
const HEARTBEAT_MS = 15_000;

const HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  // Proxies that gather answers would keep events back.
  "x-accel-buffering": "no",
};

/**
 * Answers with a stream of events. `open` may throw, and then the answer is an ordinary error; its items are turned into
 * events by `frame`, `idle` into a sign of life now and then. An item is asked for when the last one was sent: a client that
 * reads slowly, or not at all, makes nothing grow here. A fault on the way is sent as an event `error`, after which a client
 * connects again; `last` is sent at the end. Throws `FlowError` RATE_LIMITED where the caller has no place for another stream.
 */
export async function eventStream<T>(
  c: Context<RouteEnvironment>,
  { stopping, places }: StreamRoom,
  open: (signal: AbortSignal) => Promise<AsyncGenerator<T | "idle">>,
  frame: (item: T) => ServerSentEvent,
  last?: () => ServerSentEvent,
): Promise<Response> {
  const giveBack = places?.take(c);
  const { signal, left, done } = listening(c, stopping);
  const over = () => {
    done();
    giveBack?.();
  };
  // A client may leave before anything is read: then the generator below never begins, and never ends.
  if (giveBack !== undefined) signal.addEventListener("abort", giveBack, { once: true });
  if (signal.aborted) giveBack?.();
  try {
    const source = await open(signal);
    // The framework answers HEAD with the headers of this answer: a body would be neither read nor ended.
    if (c.req.method === "HEAD") {
      over();
      return c.body(null, 200, HEADERS);
    }
    // A stream made of a generator reads nothing ahead, and ends the generator when the client leaves.
    return c.body(ReadableStream.from(messagesOf(source, { signal, left, done: over }, frame, last)), 200, HEADERS);
  } catch (error) {
    over();
    throw error;
  }
}

/** A stream that another part has made, in a place that is given back when it ends or the client leaves. */
export function inPlace(
  c: Context,
  stream: ReadableStream<Uint8Array>,
  giveBack: () => void,
): ReadableStream<Uint8Array> {
  c.req.raw.signal.addEventListener("abort", giveBack, { once: true });
  if (c.req.raw.signal.aborted) giveBack();
  return ReadableStream.from(partsOf(stream, giveBack));
}

async function* partsOf(stream: ReadableStream<Uint8Array>, done: () => void): AsyncGenerator<Uint8Array> {
  try {
    yield* stream;
  } finally {
    done();
  }
}

async function* messagesOf<T>(
  source: AsyncGenerator<T | "idle">,
  { signal, done }: Listening,
  frame: (item: T) => ServerSentEvent,
  last: (() => ServerSentEvent) | undefined,
): AsyncGenerator<Uint8Array> {
  let sentAt = performance.now();
  try {
    // At once, so that a client knows that it listens.
    yield encoded("retry: 1000\n\n");
    for await (const item of source) {
      if (item !== "idle") yield encoded(textOf(frame(item)));
      else if (performance.now() - sentAt >= HEARTBEAT_MS) yield encoded(": still here\n\n");
      else continue;
      sentAt = performance.now();
    }
    if (!signal.aborted && last !== undefined) yield encoded(textOf(last()));
  } catch (error) {
    yield encoded(textOf({ event: "error", data: told(error) }));
  } finally {
    done();
  }
}

function encoded(text: string): Uint8Array {
  return Buffer.from(text);
}

function textOf({ event, id, data }: ServerSentEvent): string {
  const lines = [
    ...(event === undefined ? [] : [`event: ${event}`]),
    ...(id === undefined ? [] : [`id: ${id}`]),
    // JSON has no line break outside of texts, and escapes those within.
    `data: ${maskSealed(JSON.stringify(data))}`,
  ];
  return `${lines.join("\n")}\n\n`;
}

/** An error from outside flow may contain a statement. */
function told(error: unknown): { error: string; code: string } {
  if (error instanceof FlowError) return { error: messageOf(error), code: error.code };
  return { error: "The server could not go on; connect again", code: "UNAVAILABLE" };
}
