import { messageOf } from "../../schema/words/errors.ts";
import type { Logger } from "./logger.ts";
import { type OtlpSpan, otlpRequest } from "./otlp.ts";

/** Sends spans to a collector, in batches, behind the work. */
export interface Tracing {
  /** Takes a span. Never waits and never throws: where the collector is away or too slow, spans are dropped and counted. */
  end(span: OtlpSpan): void;
  /** Sends what is left, for a moment. */
  close(): Promise<void>;
}

/** Where spans go. */
export interface TracingOptions {
  /** Without `v1/traces`. */
  endpoint: string;
  headers: Readonly<Record<string, string>>;
  /** What all spans of this process have in common: `service.name`, … */
  resource: Readonly<Record<string, string>>;
  logger: Logger;
  /** Time between two batches. Default 1,000. */
  intervalMs?: number;
}

/** Spans that wait; about 4 MB. */
const WAITING_MAX = 8_192;
const BATCH_MAX = 512;
const INTERVAL_MS = 1_000;
const SEND_MS = 10_000;
/** How long a process that stops still sends. */
const CLOSE_MS = 3_000;

/** Opens the way to the collector; nothing is sent before there is a span. `close` ends it. */
export function openTracing(options: TracingOptions): Tracing {
  const { logger, endpoint } = options;
  const waiting: OtlpSpan[] = [];
  let dropped = 0;
  let isAway = false;
  let sending: Promise<void> | undefined;

  const failed = (batch: readonly OtlpSpan[], why: string) => {
    // Tried once: newer spans are worth as much, and an unavailable collector must not cost memory.
    dropped += batch.length;
    if (!isAway) logger.warn({ endpoint, spans: batch.length }, `spans could not be sent: ${why}`);
    isAway = true;
  };
  const send = async (batch: readonly OtlpSpan[], limitMs: number) => {
    try {
      const response = await fetch(`${endpoint}/v1/traces`, {
        method: "POST",
        headers: { ...options.headers, "content-type": "application/json" },
        body: JSON.stringify(otlpRequest(options.resource, batch)),
        signal: AbortSignal.timeout(limitMs),
      });
      await response.arrayBuffer();
      if (!response.ok) return failed(batch, `the collector answered ${response.status}`);
      if (isAway) logger.info({ endpoint, dropped }, "spans are taken again");
      isAway = false;
      dropped = 0;
    } catch (error) {
      failed(batch, messageOf(error));
    }
  };
  /* One batch at a time: a collector that is slow must not hold more than what may wait. */
  const drain = async (limitMs: number) => {
    while (waiting.length > 0) await send(waiting.splice(0, BATCH_MAX), limitMs);
  };
  const flush = (limitMs: number): Promise<void> => {
    sending ??= drain(limitMs).finally(() => {
      sending = undefined;
    });
    return sending;
  };
  const timer = setInterval(() => void flush(SEND_MS), options.intervalMs ?? INTERVAL_MS);
  timer.unref();

  return {
    end(span) {
      if (waiting.length < WAITING_MAX) waiting.push(span);
      else dropped += 1;
      if (waiting.length === BATCH_MAX) void flush(SEND_MS);
    },
    async close() {
      clearInterval(timer);
      const limit = new Promise<void>((resolve) => setTimeout(resolve, CLOSE_MS).unref());
      await Promise.race([flush(CLOSE_MS), limit]);
    },
  };
}
