import { defined } from "../../schema/words/defined.ts";
/** The fields of a span that the wire form needs. */
export interface OtlpSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: keyof typeof KINDS;
  /** Milliseconds since 1970. */
  startMs: number;
  endMs: number;
  /** Why it failed; absent on success. */
  error?: string;
  attributes: Readonly<Record<string, string | number | undefined>>;
}

/** Numbers of the protocol. */
const KINDS = { internal: 1, server: 2, client: 3, consumer: 5 } as const;
const STATUS_ERROR = 2;

/** Longest text of an attribute or an error. */
const TEXT_MAX = 1_024;

/**
 * The body of `POST v1/traces` in the protocol's JSON form, which is stable since OTLP 1.0. Written here and not by the SDK:
 * its spans are live objects with their own ids, and ours end in another process than they begin in.
 */
export function otlpRequest(resource: Readonly<Record<string, string>>, spans: readonly OtlpSpan[]): object {
  return {
    resourceSpans: [
      {
        resource: { attributes: attributesOf(resource) },
        scopeSpans: [{ scope: { name: "flow" }, spans: spans.map(spanOf) }],
      },
    ],
  };
}

function spanOf({ traceId, spanId, parentSpanId, name, kind, startMs, endMs, error, attributes }: OtlpSpan): object {
  return {
    traceId,
    spanId,
    ...defined({ parentSpanId }),
    name,
    kind: KINDS[kind],
    startTimeUnixNano: nanoseconds(startMs),
    // A clock that was set back must not give a span that ends before it begins.
    endTimeUnixNano: nanoseconds(Math.max(startMs, endMs)),
    attributes: attributesOf(attributes),
    status: error === undefined ? {} : { code: STATUS_ERROR, message: error.slice(0, TEXT_MAX) },
  };
}

/** 64-bit numbers are texts in the protocol's JSON. */
function nanoseconds(ms: number): string {
  return `${BigInt(Math.round(ms)) * 1_000_000n}`;
}

function attributesOf(values: Readonly<Record<string, string | number | undefined>>): object[] {
  return Object.entries(values).flatMap(([key, value]) => {
    if (value === undefined) return [];
    const isText = typeof value === "string";
    return [{ key, value: isText ? { stringValue: value.slice(0, TEXT_MAX) } : { intValue: String(value) } }];
  });
}
