import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { oddText } from "../support/engine/odd-text.ts";
import { openApi, playbook } from "../support/service/api.ts";

/*
 * Whatever is sent, the answer is a 200 or a refusal: never a 500, never nothing. `FLOW_SEED=… npm test -- routes/fuzz`
 * runs a seed again.
 */

const api = await openApi();
const seed = Number(process.env["FLOW_SEED"] ?? randomInt(2 ** 31));

const ANSWERS = new Set([200, 404, 413, 422]);
const SEEDED = playbook("fuzz/seed", "a", ", agent: true");

async function answers(path: string, init: RequestInit): Promise<void> {
  const response = await api.open.request(path, init);
  const text = await response.text();
  assert.ok(ANSWERS.has(response.status), `seed ${seed}: ${response.status} ${text}`);
  JSON.parse(text);
  seen.set(response.status, (seen.get(response.status) ?? 0) + 1);
}

/** How often each status was answered: a random test that is only ever refused at the door tries nothing. */
const seen = new Map<number, number>();

/** A valid document with a part of it replaced, left out or doubled. */
const bent = fc
  .tuple(fc.nat(SEEDED.length), fc.nat(40), oddText, fc.boolean())
  .map(([at, length, text, twice]) => SEEDED.slice(0, at) + text + SEEDED.slice(twice ? at : at + length));

/** Values of every type where a document has texts. */
const document = fc.record({
  apiVersion: fc.constantFrom("flow/v2", "v1", 2),
  kind: fc.constantFrom("Playbook", "Agent", "Mcp", "Job", null),
  metadata: fc.oneof(fc.record({ name: oddText, path: fc.oneof(oddText, fc.jsonValue()) }), fc.jsonValue()),
  spec: fc.oneof(
    fc.record({ endpoint: oddText, lifecycle: fc.jsonValue(), timeout_seconds: fc.double() }),
    fc.jsonValue(),
  ),
  workflow: fc.oneof(fc.array(fc.record({ step: oddText, tool: fc.jsonValue() })), fc.jsonValue()),
  workload: fc.jsonValue(),
});

/** Valid but for what stands in its workload. */
const loaded = fc.oneof(fc.jsonValue(), oddText).map((value) => playbook("fuzz/loaded", JSON.stringify(value)));

const content = fc.oneof(
  loaded,
  oddText,
  bent,
  document.map((value) => JSON.stringify(value)),
);

const body = fc.oneof(
  fc.record(
    { content, resource_type: fc.oneof(oddText, fc.constantFrom("agent", "MCP")), if_changed: fc.jsonValue() },
    { requiredKeys: [] },
  ),
  fc.record({ content }),
  fc.jsonValue(),
);

test(`no body of a registration gives a 500 (seed ${seed})`, async () => {
  const property = fc.asyncProperty(
    fc.oneof(
      body.map((value) => JSON.stringify(value)),
      oddText,
    ),
    (text) => answers("/api/catalog/register", { method: "POST", body: text }),
  );
  await fc.assert(property, { seed, numRuns: 400, endOnFailure: true });
  for (const status of [200, 422])
    assert.ok((seen.get(status) ?? 0) >= 5, `seed ${seed}: ${JSON.stringify([...seen])}`);
});

test(`no path, query or cursor gives a 500 (seed ${seed})`, async () => {
  const encoded = oddText.map((text) => encodeURIComponent(text.replace(/\p{Surrogate}/gu, "")));
  const cursor = fc.jsonValue().map((value) => Buffer.from(JSON.stringify(value) ?? "").toString("base64url"));
  const address = fc.oneof(
    fc
      .tuple(fc.constantFrom("resource", "versions"), encoded, fc.oneof(encoded, cursor))
      .map(([list, path, value]) => `/api/catalog/${list}/x${path}?version=${value}&cursor=${value}&limit=3`),
    fc
      .tuple(fc.constantFrom("cursor", "limit", "prefix", "resource_type"), fc.oneof(encoded, cursor))
      .map(([name, value]) => `/api/catalog?${name}=${value}`),
  );
  await fc.assert(
    fc.asyncProperty(address, (path) => answers(path, {})),
    { seed, numRuns: 300, endOnFailure: true },
  );
});

test(`no body of the list of agents gives a 500 (seed ${seed})`, async () => {
  const cursor = fc.oneof(
    oddText,
    fc.jsonValue().map((value) => Buffer.from(JSON.stringify(value) ?? "").toString("base64url")),
  );
  const asked = fc.oneof(
    fc.record({ limit: fc.oneof(fc.integer(), fc.double()), cursor }, { requiredKeys: [] }),
    fc.jsonValue(),
  );
  await fc.assert(
    fc.asyncProperty(asked, (value) =>
      answers("/api/catalog/agents/list", { method: "POST", body: JSON.stringify(value) }),
    ),
    { seed, numRuns: 200, endOnFailure: true },
  );
});

test("hostile documents are refused in bounded time", async () => {
  const bomb = `a: &a [x]\n${Array.from({ length: 20 }, (_, at) => `b${at}: &b${at} [*a, *a]`).join("\n")}\n`;
  for (const text of [bomb, "[".repeat(500_000), "a: ".repeat(100_000), "- ".repeat(400_000), "x".repeat(1_100_000)]) {
    await answers("/api/catalog/register", { method: "POST", body: JSON.stringify({ content: text }) });
  }
});
