import { EventSourceParserStream } from "eventsource-parser/stream";
import { Problem, problemOf, unreachable } from "./problem.ts";
import { missed, reached } from "./reach.ts";
import { addressOf, authorization } from "./session.ts";

/** How a live stream stands. */
export type LiveState =
  | { is: "connecting" }
  | { is: "live" }
  /** It is tried again by itself at `tryAt`, milliseconds since 1970. */
  | { is: "lost"; problem: Problem; tryAt: number }
  /** The server has no room for another stream. It is asked again at `tryAt`; until then the page has to look for itself. */
  | { is: "crowded"; problem: Problem; tryAt: number }
  /**
   * An error that retries do not solve: the user has to log in, lacks the permission, or the execution is gone. `at` as above.
   */
  | { is: "stopped"; problem: Problem; at: number }
  | { is: "ended" };

/** State of a stream. */
export interface LiveListener {
  /** Something happened; `last` is the event up to which all is known, `text` its JSON, without long values. */
  onEvent(last: number, text: string): void;
  onState(state: LiveState): void;
}

/** First pause after a lost connection, doubled up to the longest, milliseconds. */
const PAUSE_MS = 500;
const PAUSE_MAX_MS = 10_000;
/** Pause where the server has no room: what its Retry-After says. */
const CROWDED_MS = 10_000;
/** The server says something at least each 15 s. */
const SILENCE_MS = 40_000;
/** Answers after which asking again by itself is of no use. */
const FINAL: ReadonlySet<number> = new Set([401, 403, 404]);

/**
 * Follows an execution's events after one of them until its end, over lost connections: it goes on after the last event that
 * came. Nothing of an event is kept but its id. Ends quietly when `signal` aborts.
 */
export async function follow(
  executionId: string,
  after: number,
  { onEvent, onState }: LiveListener,
  signal: AbortSignal,
): Promise<void> {
  let last = after;
  let pauseMs = PAUSE_MS;
  const take = (eventId: number, text: string) => {
    pauseMs = PAUSE_MS;
    if (eventId <= last) return;
    last = eventId;
    onEvent(last, text);
  };
  onState({ is: "connecting" });
  while (!signal.aborted) {
    try {
      if (await readStream(executionId, last, () => onState({ is: "live" }), take, signal)) {
        onState({ is: "ended" });
        return;
      }
      throw new Problem(0, "NETWORK", "The connection ended");
    } catch (error) {
      if (signal.aborted) return;
      const problem = unreachable(error);
      if (FINAL.has(problem.status)) {
        onState({ is: "stopped", problem, at: Date.now() });
        return;
      }
      if (problem.status === 0) missed();
      const isCrowded = problem.status === 429;
      if (isCrowded) pauseMs = CROWDED_MS;
      onState({ is: isCrowded ? "crowded" : "lost", problem, tryAt: Date.now() + pauseMs });
    }
    await pause(pauseMs, signal);
    pauseMs = Math.min(PAUSE_MAX_MS, pauseMs * 2);
  }
}

/** Reads one connection; true when the execution has ended. */
async function readStream(
  executionId: string,
  after: number,
  onOpen: () => void,
  take: (eventId: number, text: string) => void,
  signal: AbortSignal,
): Promise<boolean> {
  // Ends the connection when it is silent, and when it was read to its end.
  const over = new AbortController();
  let timer = setTimeout(() => over.abort(), SILENCE_MS);
  const onBytes = () => {
    clearTimeout(timer);
    timer = setTimeout(() => over.abort(), SILENCE_MS);
  };
  const stop = () => over.abort();
  signal.addEventListener("abort", stop);
  try {
    const address = `/api/executions/${encodeURIComponent(executionId)}/stream?after=${after}&values=short`;
    const response = await fetch(addressOf(address), {
      headers: { accept: "text/event-stream", ...authorization() },
      signal: over.signal,
      credentials: "same-origin",
    });
    if (!response.ok || response.body === null) throw await problemOf(response);
    reached();
    onOpen();
    const texts = response.body.pipeThrough(textOf(onBytes));
    const messages = texts.pipeThrough(new EventSourceParserStream()).getReader();
    for (;;) {
      const { value, done } = await messages.read();
      if (done) return false;
      if (value.event === "end") return true;
      if (value.event === undefined && value.id !== undefined) take(Number(value.id), value.data);
    }
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
    over.abort();
  }
}

/** Text of bytes, and a sign with each of them. */
function textOf(onBytes: () => void): TransformStream<Uint8Array, string> {
  const decoder = new TextDecoder();
  return new TransformStream({
    transform(chunk, controller) {
      onBytes();
      controller.enqueue(decoder.decode(chunk, { stream: true }));
    },
  });
}

/** Waits; a network that comes back ends it. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      removeEventListener("online", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
    addEventListener("online", done);
  });
}
