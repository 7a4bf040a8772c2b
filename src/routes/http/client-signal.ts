import type { Context } from "hono";

/** A signal that aborts when the client disconnects. */
export interface Listening {
  /** Aborted when the client has left, or the server stops. */
  signal: AbortSignal;
  /** Aborted when the client has left. */
  left: AbortSignal;
  /** Call it when the answer is given, unless the signal was aborted. */
  done(): void;
}

/** Joins the two by hand: a signal made of others would stay with the server's for as long as that lives. */
export function listening(c: Context, stopping: AbortSignal): Listening {
  const controller = new AbortController();
  const client = c.req.raw.signal;
  const done = () => {
    client.removeEventListener("abort", abort);
    stopping.removeEventListener("abort", abort);
  };
  const abort = () => {
    controller.abort();
    done();
  };
  client.addEventListener("abort", abort, { once: true });
  stopping.addEventListener("abort", abort, { once: true });
  if (client.aborted || stopping.aborted) abort();
  return { signal: controller.signal, left: client, done };
}
