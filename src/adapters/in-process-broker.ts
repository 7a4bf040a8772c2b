import type { Logger } from "../platform/telemetry/logger.ts";
import type { Broker } from "../ports/broker.ts";
import type { Notice } from "../schema/words/notice.ts";

/**
 * The broker of a service whose servers are one process. Notices are handed over once the publisher's turn is over, before any
 * other I/O: nothing is lost, nothing piles up.
 */
export function createInProcessBroker(logger: Logger): Broker {
  const handlers = new Set<(notice: Notice) => void>();
  let closed = false;
  return {
    publish(notice) {
      if (closed || handlers.size === 0) return;
      queueMicrotask(() => {
        if (!closed) notifyAll(handlers, notice, logger);
      });
    },
    subscribe(handler) {
      // A new closure, so that one function may subscribe twice.
      const listener = (notice: Notice) => handler(notice);
      handlers.add(listener);
      return () => void handlers.delete(listener);
    },
    connected: () => !closed,
    close() {
      closed = true;
      handlers.clear();
      return Promise.resolve();
    },
  };
}

/** An error of one subscriber does not keep the notice from the others. */
function notifyAll(handlers: ReadonlySet<(notice: Notice) => void>, notice: Notice, logger: Logger): void {
  for (const handler of handlers) {
    try {
      handler(notice);
    } catch (err) {
      logger.error({ err, kind: notice.kind }, "a subscriber of the broker failed with a notice");
    }
  }
}
