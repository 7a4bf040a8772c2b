import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { TRACING_SETTINGS } from "../../src/platform/config/tracing.ts";
import { createGatewayMetrics } from "../../src/platform/telemetry/gateway-metrics.ts";
import { createMetrics } from "../../src/platform/telemetry/metrics.ts";

const page = readFileSync(join(import.meta.dirname, "../../../docs/observability.md"), "utf8");

test("the page about metrics names every series, and only existing ones", async () => {
  const texts = [(await createMetrics().expose()).text, (await createGatewayMetrics().expose()).text];
  const served = [...texts.join("\n").matchAll(/^# TYPE ((?:flow|noetl)_\w+)/gm)].map(([, name = ""]) => name).sort();
  assert.ok(served.length > 10, served.join(", "));
  const told = [...page.matchAll(/^\| `((?:flow|noetl)_\w+)/gm)].map(([, name = ""]) => name.replace(/_sum$/, ""));
  // A row of the alerts may begin with a series too.
  assert.deepEqual([...new Set(told)].sort(), served);
});

test("the page about traces names every setting of traces", () => {
  for (const { name } of Object.values(TRACING_SETTINGS)) assert.ok(page.includes(`| \`${name}\` |`), name);
});
