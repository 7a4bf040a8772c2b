import { createHash, randomBytes } from "node:crypto";

/** A place in a distributed trace (W3C Trace Context). */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  traceId: string;
  /** 16 hexadecimal digits. */
  spanId: string;
  /** The trace is sampled: its spans are kept. */
  sampled: boolean;
}

const TRACEPARENT = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;

/**
 * The context of a `traceparent` header; undefined for an invalid one, which begins no trace. Versions
 * after 00 may have further fields, which are left out.
 */
export function parseTraceparent(header: string | undefined): TraceContext | undefined {
  const [, version, traceId = "", spanId = "", flags = "", more] = TRACEPARENT.exec(header?.trim() ?? "") ?? [];
  if (version === undefined || version === "ff" || (version === "00" && more !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** The context as a `traceparent` header. */
export function formatTraceparent({ traceId, spanId, sampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`;
}

/** A new trace. */
export function newTraceId(): string {
  return randomBytes(16).toString("hex");
}

/**
 * The id of the span of a thing that has an id: an execution, a claim, a run of a task. So every process that knows the thing knows its
 * span, and no process need keep one open: the execution may end on another server than the one where it began.
 */
export function spanIdOf(...names: readonly (string | number)[]): string {
  return createHash("sha256").update(names.join(" ")).digest("hex").slice(0, 16);
}
