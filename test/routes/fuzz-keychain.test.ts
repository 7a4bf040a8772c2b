import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { before, test } from "node:test";
import fc from "fast-check";
import { oddText } from "../support/engine/odd-text.ts";
import { bent, oddValue } from "../support/servers/bent.ts";
import { openApi } from "../support/service/api.ts";
import { ONE_STEP, workWith } from "../support/service/api-work.ts";

/*
 * Whatever is sent to the routes of the keychain and of transient values, the answer is a success or a refusal: never a 500,
 * never nothing. `FLOW_SEED=… npm test -- routes/fuzz-keychain` runs a seed again.
 */

const api = await openApi();
const work = workWith(api);
const seed = Number(process.env["FLOW_SEED"] ?? randomInt(2 ** 31));

const ANSWERS = new Set([200, 400, 404, 409, 413, 422]);

let catalogId: string;
let executionId: string;
before(async () => {
  await work.register("fuzz", ONE_STEP);
  catalogId = String((await work.get("/api/catalog/resource/fuzz")).body["catalog_id"]);
  executionId = await work.execute("fuzz");
});

/** Sends it, and counts. A random test that is only ever refused at the door tries nothing. */
async function answers(path: string, init: RequestInit, seen: { taken: number; refused: number }): Promise<void> {
  const response = await api.open.request(path, init);
  const text = await response.text();
  assert.ok(ANSWERS.has(response.status), `seed ${seed}: ${path} ${String(init.body)}: ${response.status} ${text}`);
  JSON.parse(text);
  if (response.status < 300) seen.taken += 1;
  else seen.refused += 1;
}

const BODIES = [
  {
    name: "a keychain entry",
    method: "POST",
    path: () => `/api/keychain/${catalogId}/k`,
    body: () => ({
      ...{ token_data: { access_token: "x", list: [1] }, credential_type: "oauth2", cache_type: "token" },
      ...{ scope_type: "shared", execution_id: Number(executionId), parent_execution_id: null, ttl_seconds: 60 },
      ...{ expires_at: "2030-01-01T00:00:00Z", auto_renew: true, renew_config: { endpoint: "https://idp", data: {} } },
      schema: { fields: ["access_token", "list"], required: ["list"], types: { list: "array" }, description: "x" },
    }),
  },
  {
    name: "an ask for a lease",
    method: "POST",
    path: () => `/api/keychain/${catalogId}/l/lease`,
    body: () => ({ scope_type: "local", execution_id: executionId, holder: "h", lease_ms: 1_000, wait_ms: 0 }),
  },
  {
    name: "a transient value",
    method: "PUT",
    path: () => `/api/executions/${executionId}/transient/k`,
    body: () => ({ value: { a: [1, "b"] }, ttl_seconds: 60 }),
  },
];

for (const { name, method, path, body } of BODIES) {
  test(`no body of ${name} gives a 500 (seed ${seed})`, async () => {
    const seen = { taken: 0, refused: 0 };
    await answers(path(), { method, body: JSON.stringify(body()) }, seen);
    assert.equal(seen.taken, 1);
    const property = fc.asyncProperty(fc.nat(), oddValue, async (at, odd) => {
      const sent = JSON.stringify(bent(body(), (places) => at % places, odd));
      await answers(path(), { method, ...(sent !== undefined && { body: sent }) }, seen);
    });
    await fc.assert(property, { seed, numRuns: 200, endOnFailure: true });
    assert.ok(seen.refused >= 5 && seen.taken >= 1, `seed ${seed}: ${JSON.stringify(seen)}`);
  });
}

test(`no name, id or query gives a 500 (seed ${seed})`, async () => {
  const seen = { taken: 0, refused: 0 };
  const encoded = oddText.map((text) => encodeURIComponent(text.replace(/\p{Surrogate}/gu, "")));
  const raw = fc.constantFrom("%", "%ff", "%00", "0", "-1", "1e9", "99999999999999999999", "x".repeat(4_000));
  const cursor = fc.jsonValue().map((value) => Buffer.from(JSON.stringify(value) ?? "").toString("base64url"));
  const value = fc.oneof(encoded, raw, cursor);
  const query = fc
    .tuple(fc.constantFrom("scope_type", "execution_id", "cursor", "limit"), value)
    .map(([name, text]) => `?${name}=${text}`);
  const address = fc.oneof(
    fc.tuple(value, value).map(([id, name]) => `/api/keychain/x${id}/x${name}`),
    fc.tuple(value, query).map(([name, rest]) => `/api/keychain/${catalogId}/x${name}${rest}`),
    query.map((rest) => `/api/keychain/catalog/${catalogId}${rest}`),
    value.map((id) => `/api/keychain/catalog/x${id}`),
    value.map((key) => `/api/executions/${executionId}/transient/x${key}`),
    query.map((rest) => `/api/executions/${executionId}/transient${rest}`),
  );
  const property = fc.asyncProperty(fc.constantFrom("GET", "DELETE"), address, (method, path) =>
    answers(path, { method: path.includes("catalog") || path.includes("transient?") ? "GET" : method }, seen),
  );
  await fc.assert(property, { seed, numRuns: 400, endOnFailure: true });
  assert.ok(seen.refused >= 5 && seen.taken >= 1, `seed ${seed}: ${JSON.stringify(seen)}`);
});
