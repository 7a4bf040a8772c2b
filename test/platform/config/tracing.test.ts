import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfig } from "../../../src/platform/config/config.ts";
import { headersOf } from "../../../src/platform/config/tracing.ts";

test("without settings there is no collector, and every execution would begin a trace", () => {
  const { otlpEndpoint, otlpHeaders, serviceName, traceRatio } = loadConfig({});
  assert.deepEqual([otlpEndpoint, otlpHeaders, serviceName, traceRatio], [undefined, undefined, "flow", 1]);
  assert.deepEqual(headersOf(otlpHeaders), {});
});

test("the settings have the names and forms of OpenTelemetry", () => {
  const config = loadConfig({
    OTEL_EXPORTER_OTLP_ENDPOINT: "https://collector.example.com:4318/otlp/",
    OTEL_EXPORTER_OTLP_HEADERS: "Authorization=Bearer%20a=b, x-tenant = acme ,x-odd=%E0%A4%A",
    OTEL_SERVICE_NAME: "orders",
    OTEL_TRACES_SAMPLER_ARG: "0.25",
  });
  assert.equal(config.otlpEndpoint, "https://collector.example.com:4318/otlp");
  assert.deepEqual([config.serviceName, config.traceRatio], ["orders", 0.25]);
  assert.deepEqual(headersOf(config.otlpHeaders), {
    authorization: "Bearer a=b",
    "x-tenant": "acme",
    "x-odd": "%E0%A4%A",
  });
  assert.doesNotMatch(JSON.stringify(config.otlpHeaders), /Bearer/, "headers may hold a token");
});

for (const [name, value] of [
  ["OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318"],
  ["OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://collector"],
  ["OTEL_EXPORTER_OTLP_HEADERS", "secret-without-a-name"],
  ["OTEL_TRACES_SAMPLER_ARG", "1.5"],
  ["OTEL_TRACES_SAMPLER_ARG", "half"],
] as const) {
  test(`${name}=${value} is refused`, () => {
    assert.throws(
      () => loadConfig({ [name]: value }),
      (error: Error) => error.message.startsWith(`${name} must be`) && !error.message.includes("secret"),
    );
  });
}
