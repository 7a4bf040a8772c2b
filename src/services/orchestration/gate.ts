import { FlowError } from "../../schema/words/errors.ts";
import type { RoundLoop } from "./round-loop.ts";

/** How much may wait. */
export interface GateLimits {
  /** `FLOW_BATCH_ACCEPT_QUEUE_MAXSIZE`. */
  queueMax: number;
  /** `FLOW_BATCH_ACCEPT_QUEUE_BYTES`. Default: any. */
  queueBytesMax?: number;
}

/** What a refused request is told while the server stops. */
type StoppingCode = "worker_unavailable" | "UNAVAILABLE";

/**
 * Decides which requests may wait to be written. What is let in is answered when it is durable; what would be too much is refused
 * at once, by the length of the queue and not by the time that it takes.
 */
export interface Gate {
  /** Throws `FlowError` with the given code if the server is stopping, and queue_unavailable if the queue is full. */
  check(code: StoppingCode): void;
  /**
   * {@link Gate.check}, and takes a place until the request is in the queue: the function that is returned gives it back; further
   * calls of it do nothing.
   */
  enter(code: StoppingCode, bytes: number): () => void;
  /** Throws `FlowError` queue_unavailable if one of these executions has its share of the places already. */
  checkShare(executionIds: readonly string[]): void;
  isClosed(): boolean;
  close(): void;
}

/**
 * The part of the places that the requests of one execution may have. An execution that cannot be written (another holds its row,
 * or it is being loaded) does not take the places of all others.
 */
const SHARE = 1 / 4;

/** Open. */
export function createGate(
  { queueMax, queueBytesMax = Number.POSITIVE_INFINITY }: GateLimits,
  queue: Pick<RoundLoop, "depth" | "bytes" | "waitingFor">,
): Gate {
  const shareMax = Math.max(1, Math.floor(queueMax * SHARE));
  const entering = { count: 0, bytes: 0 };
  let closed = false;
  const check = (code: StoppingCode, bytes: number) => {
    if (closed)
      throw new FlowError(code, "This server is stopping. Send the same again to another one, or in a few seconds");
    const waiting = queue.depth() + entering.count;
    if (waiting >= queueMax) throw full(`Already ${waiting} requests wait to be written`);
    const held = queue.bytes() + entering.bytes;
    // One that is larger than all places together has them when nothing else waits.
    if (held > 0 && held + bytes > queueBytesMax) throw full(`Requests of ${held} bytes wait to be written already`);
  };
  return {
    check: (code) => check(code, 0),
    enter(code, bytes) {
      check(code, bytes);
      entering.count += 1;
      entering.bytes += bytes;
      let isIn = true;
      return () => {
        if (!isIn) return;
        isIn = false;
        entering.count -= 1;
        entering.bytes -= bytes;
      };
    },
    checkShare(executionIds) {
      const over = executionIds.find((id) => queue.waitingFor(id) >= shareMax);
      if (over !== undefined) throw full(`Already ${shareMax} requests of execution ${over} wait to be written`);
    },
    isClosed: () => closed,
    close() {
      closed = true;
    },
  };
}

function full(why: string): FlowError {
  return new FlowError("queue_unavailable", `${why}. Try again in a second`);
}
