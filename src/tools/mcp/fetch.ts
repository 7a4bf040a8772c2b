import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js";
import { type Dispatcher, fetch } from "undici";
import { defined } from "../../schema/words/defined.ts";
import { isJsonObject } from "../../schema/words/json.ts";

/** The end of an answer that was a stream of events. */
export interface StreamEnd {
  /** Of the request whose answer was to come by it; undefined for a stream that was opened by itself. */
  requestId: string | number | undefined;
  /** Its events have ids, so the client may request the events it missed. */
  isResumable: boolean;
  /** Absent where the server ended it. */
  error?: unknown;
}

/** What {@link guardedFetch} takes. */
export interface GuardedFetch {
  dispatcher: Dispatcher;
  /** Largest answer in bytes. */
  responseBytesMax: number;
  signal: AbortSignal;
  /**
   * Called once for each stream of events that ended by itself. The SDK does not report it: a request whose stream broke would
   * wait for the task's time-out.
   */
  onStreamEnd(end: StreamEnd): void;
}

/** `fetch` through the guarded dispatcher, with a bound on every answer's body. */
export function guardedFetch({ dispatcher, responseBytesMax, signal, onStreamEnd }: GuardedFetch): FetchLike {
  return async (url, init) => {
    const signals = init?.signal ? AbortSignal.any([init.signal, signal]) : signal;
    const request = { ...init, signal: signals, dispatcher } as Parameters<typeof fetch>[1];
    const response = await fetch(url, request);
    if (response.body === null) return response as unknown as Response;
    const { status, statusText } = response;
    const headers = [...response.headers] as [string, string][];
    const isStream = response.ok && /^text\/event-stream\b/i.test(response.headers.get("content-type") ?? "");
    const lines = createIdFinder();
    const bounded = observed(response.body as unknown as ReadableStream<Uint8Array>, {
      bytesMax: responseBytesMax,
      chunk: isStream ? lines.look : () => undefined,
      ended: (error) => {
        if (!isStream) return;
        const requestId = requestIdOf(init?.body);
        onStreamEnd({ requestId, isResumable: lines.found(), ...defined({ error }) });
      },
    });
    return new Response(bounded, { status, statusText, headers });
  };
}

interface Observer {
  bytesMax: number;
  chunk(bytes: Uint8Array): void;
  ended(error?: unknown): void;
}

/** The same bytes, read when they are asked for. What its reader cancels did not end by itself. */
function observed(body: ReadableStream<Uint8Array>, { bytesMax, chunk, ended }: Observer): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let size = 0;
  const source = {
    async pull(controller: ReadableStreamDefaultController<Uint8Array>) {
      try {
        const { done, value } = await reader.read();
        if (done) {
          controller.close();
          ended();
          return;
        }
        size += value.byteLength;
        if (size > bytesMax) throw new Error(`the answer is larger than ${bytesMax} bytes`);
        chunk(value);
        controller.enqueue(value);
      } catch (error) {
        controller.error(error);
        ended(error);
        await reader.cancel(error).catch(() => undefined);
      }
    },
    cancel: (reason: unknown) => reader.cancel(reason),
  };
  return new ReadableStream(source, { highWaterMark: 0 });
}

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
/** `id:` */
const ID = [0x69, 0x64, 0x3a];

/** Finds out whether a line of the stream begins with `id:`, wherever it is cut into chunks. */
function createIdFinder(): { look(bytes: Uint8Array): void; found(): boolean } {
  /** Bytes of `id:` that the current line has so far; -1 once it has begun otherwise. */
  let matched = 0;
  let isFound = false;
  return {
    look(bytes) {
      for (const byte of isFound ? [] : bytes) {
        if (byte === LINE_FEED || byte === CARRIAGE_RETURN) matched = 0;
        else if (matched >= 0) matched = byte === ID[matched] ? matched + 1 : -1;
        if (matched === ID.length) {
          isFound = true;
          return;
        }
      }
    },
    found: () => isFound,
  };
}

function requestIdOf(body: unknown): string | number | undefined {
  if (typeof body !== "string") return undefined;
  const message: unknown = JSON.parse(body);
  const id = isJsonObject(message) ? message["id"] : undefined;
  return typeof id === "string" || typeof id === "number" ? id : undefined;
}
