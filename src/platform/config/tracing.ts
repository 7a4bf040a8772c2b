import { FlowError } from "../../schema/words/errors.ts";
import { createSecret, type Secret } from "../crypto/secret.ts";
import { setting } from "../setting.ts";

/** Settings of traces, under the names that OpenTelemetry gives them. */
export const TRACING_SETTINGS = {
  otlpEndpoint: setting({
    name: "OTEL_EXPORTER_OTLP_ENDPOINT",
    meaning: "OTLP/HTTP collector that spans are sent to (its path v1/traces), such as http://127.0.0.1:4318",
    default: "none: no spans",
    parse: (text) => (text === undefined ? undefined : endpoint(text)),
  }),
  otlpHeaders: setting({
    name: "OTEL_EXPORTER_OTLP_HEADERS",
    meaning: "Headers of the calls to the collector: name=value, comma-separated",
    default: "none",
    secret: true,
    parse: headers,
  }),
  serviceName: setting({
    name: "OTEL_SERVICE_NAME",
    meaning: "Name of this service in traces",
    default: "flow",
    parse: (text) => text ?? "flow",
  }),
  traceRatio: setting({
    name: "OTEL_TRACES_SAMPLER_ARG",
    meaning:
      "Share, 0 to 1, of the executions that begin a trace; a caller that sends a traceparent decides for itself",
    default: "1",
    parse: (text) => ratio(text ?? "1"),
  }),
} as const;

function endpoint(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === "http:" || url?.protocol === "https:") return text.replace(/\/+$/, "");
  throw invalid("OTEL_EXPORTER_OTLP_ENDPOINT", "an address that begins with http:// or https://");
}

function headers(text: string | undefined): Secret | undefined {
  if (text === undefined) return undefined;
  for (const part of text.split(",")) {
    // The text may hold a token: it is not shown.
    if (!/^\s*[\w-]+\s*=/.test(part)) throw invalid("OTEL_EXPORTER_OTLP_HEADERS", "name=value, comma-separated");
  }
  return createSecret(text);
}

/** The headers as a map. Values may be percent-encoded. */
export function headersOf(secret: Secret | undefined): Record<string, string> {
  const parts = secret?.reveal().split(",") ?? [];
  return Object.fromEntries(
    parts.map((part) => {
      const [name = "", value = ""] = part.split(/=(.*)/s);
      return [name.trim().toLowerCase(), decoded(value.trim())];
    }),
  );
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

function ratio(text: string): number {
  const number = Number(text);
  if (text.trim() !== "" && number >= 0 && number <= 1) return number;
  throw invalid("OTEL_TRACES_SAMPLER_ARG", `a number from 0 to 1, got '${text}'`);
}

function invalid(name: string, rule: string): FlowError {
  return new FlowError("INVALID_SETTING", `${name} must be ${rule}`);
}
