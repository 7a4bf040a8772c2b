import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** A span as the collector gets it. */
export interface ReceivedSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  status: { code?: number; message?: string };
  /** By key; numbers are texts, as they are sent. */
  attributes: Record<string, string>;
  /** Attributes of the process that sent it. */
  resource: Record<string, string>;
}

/** An OTLP/HTTP collector that keeps what it gets. */
export interface OtlpReceiver {
  /** For `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  endpoint: string;
  spans: ReceivedSpan[];
  /** Headers of the last call. */
  headers(): Readonly<Record<string, unknown>>;
  /** Answers every call with this status from now on. */
  answer(status: number): void;
  /** Calls so far. */
  calls(): number;
  /** Resolves when the condition holds for what was received. */
  until(condition: () => boolean): Promise<void>;
  close(): Promise<void>;
}

interface Attribute {
  key: string;
  value: { stringValue?: string; intValue?: string };
}

interface Body {
  resourceSpans: {
    resource: { attributes: Attribute[] };
    scopeSpans: { spans: (Omit<ReceivedSpan, "attributes" | "resource"> & { attributes: Attribute[] })[] }[];
  }[];
}

/** Starts one on a free port. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  let status = 200;
  let calls = 0;
  let headers: Record<string, unknown> = {};
  let tell = () => {};
  const receive = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await text(request);
    calls += 1;
    headers = request.headers;
    if (status === 200 && request.url === "/v1/traces") spans.push(...spansOf(JSON.parse(body) as Body));
    response.writeHead(request.url === "/v1/traces" ? status : 404, { "content-type": "application/json" }).end("{}");
    tell();
  };
  const server = createServer((request, response) => void receive(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    headers: () => headers,
    answer: (next) => {
      status = next;
    },
    calls: () => calls,
    until: (condition) =>
      new Promise((resolve) => {
        tell = () => {
          if (condition()) resolve();
        };
        tell();
      }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function spansOf({ resourceSpans }: Body): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({ ...span, attributes: mapOf(span.attributes), resource: mapOf(resource.attributes) })),
    ),
  );
}

function mapOf(attributes: readonly Attribute[]): Record<string, string> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue ?? ""]));
}
