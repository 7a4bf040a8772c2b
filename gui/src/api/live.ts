import { EventSourceParserStream } from "eventsource-parser/stream";
import { Problem, problemOf, unreachable } from "./problem.ts";
import { addressOf, authorization } from "./session.ts";
import type { EventRecord } from "./types.ts";

/** How a live stream stands. */
export type LiveState =
  | { is: "connecting" }
  | { is: "live" }
  | { is: "lost"; problem: Problem; tryAt: number }
  | { is: "ended" };

/** First pause after a lost connection, doubled up to the longest, milliseconds. */
const PAUSE_MS = 500;
const PAUSE_MAX_MS = 10_000;
/** The server says something at least each 15 s. */
const SILENCE_MS = 40_000;

/**
 * Follows an execution's events after one of them until its end, over lost connections: it goes on after the last event that
 * was given. `onEvents` gets what came together at once, in order, without doubles. Ends quietly when `signal` aborts.
 */
export async function follow(
  executionId: string,
  after: number,
  { onEvents, onState }: { onEvents(events: EventRecord[]): void; onState(state: LiveState): void },
  signal: AbortSignal,
): Promise<void> {
  let last = after;
  let pauseMs = PAUSE_MS;
  const take = (event: EventRecord) => {
    pauseMs = PAUSE_MS;
    if (event.event_id <= last) return;
    last = event.event_id;
    onEvents([event]);
  };
  while (!signal.aborted) {
    onState({ is: "connecting" });
    try {
      if (await readStream(executionId, last, () => onState({ is: "live" }), take, signal)) {
        onState({ is: "ended" });
        return;
      }
      throw new Problem(0, "NETWORK", "The connection ended");
    } catch (error) {
      if (signal.aborted) return;
      const problem = unreachable(error);
      onState({ is: "lost", problem, tryAt: Date.now() + pauseMs });
      // Nothing that waiting mends.
      if (problem.status === 401 || problem.status === 403 || problem.status === 404) return;
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
  take: (event: EventRecord) => void,
  signal: AbortSignal,
): Promise<boolean> {
  const silent = new AbortController();
  let timer = setTimeout(() => silent.abort(), SILENCE_MS);
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silent.abort(), SILENCE_MS);
  };
  try {
    const response = await fetch(
      addressOf(`/api/executions/${encodeURIComponent(executionId)}/stream?after=${after}`),
      {
        headers: { accept: "text/event-stream", ...authorization() },
        signal: AbortSignal.any([signal, silent.signal]),
        credentials: "same-origin",
      },
    );
    if (!response.ok || response.body === null) throw await problemOf(response);
    onOpen();
    const texts = response.body.pipeThrough(textOf(heard));
    const messages = texts.pipeThrough(new EventSourceParserStream()).getReader();
    for (;;) {
      const { value, done } = await messages.read();
      if (done) return false;
      if (value.event === "end") return true;
      if (value.event === undefined) take(JSON.parse(value.data) as EventRecord);
    }
  } finally {
    clearTimeout(timer);
  }
}

/** Text of bytes, and a sign with each of them. */
function textOf(heard: () => void): TransformStream<Uint8Array, string> {
  const decoder = new TextDecoder();
  return new TransformStream({
    transform(chunk, controller) {
      heard();
      controller.enqueue(decoder.decode(chunk, { stream: true }));
    },
  });
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
