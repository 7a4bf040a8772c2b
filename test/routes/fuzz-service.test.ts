import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { before, test } from "node:test";
import fc from "fast-check";
import { oddText } from "../support/engine/odd-text.ts";
import { bent, oddValue } from "../support/servers/bent.ts";
import { openApi } from "../support/service/api.ts";
import { endOf, TWO_STEPS, workWith } from "../support/service/api-work.ts";

/*
 * Whatever is sent to the routes of executions, events, claims and workers, the answer is a success or a refusal: never a
 * 500, never nothing. `FLOW_SEED=… npm test -- routes/fuzz-service` runs a seed again.
 */

const api = await openApi();
const work = workWith(api);
const seed = Number(process.env["FLOW_SEED"] ?? randomInt(2 ** 31));
/** Each run of the suite has a seed of its own: what a rare body breaks is found by a later one. */
const RUNS = 50;

before(() => work.register("fuzz", TWO_STEPS));

const ANSWERS = new Set([200, 202, 404, 409, 413, 422]);

/** How often each kind of answer was given: a random test that is only ever refused at the door tries nothing. */
interface Seen {
  taken: number;
  refused: number;
}

async function answers(path: string, init: RequestInit, seen: Seen): Promise<void> {
  const response = await api.open.request(path, init);
  const text = await response.text();
  assert.ok(ANSWERS.has(response.status), `seed ${seed}: ${path} ${String(init.body)}: ${response.status} ${text}`);
  JSON.parse(text);
  if (response.status < 300) seen.taken += 1;
  else seen.refused += 1;
}

interface Route {
  name: string;
  method?: string;
  path: string;
  /** A body that is taken; made anew for each try. */
  body(): Promise<unknown>;
}

async function command() {
  const id = await work.execute("fuzz");
  const claimed = await work.claim("w", 100);
  return claimed.find(({ execution_id }) => execution_id === id) ?? claimed[0] ?? assert.fail("nothing was claimed");
}

const ROUTES: Route[] = [
  {
    name: "starting an execution",
    path: "/api/execute",
    body: async () => ({
      path: "fuzz",
      version: 1,
      resource_kind: "playbook",
      workload: { who: "x", list: [1] },
      parent_execution_id: await work.execute("fuzz"),
      parent_step: "start",
      parent_iter: { item: 1 },
    }),
  },
  {
    name: "a batch of events",
    path: "/api/events/batch",
    body: async () => ({
      worker: "w",
      events: endOf(await command(), { a: [1, "b"] }),
      claim: { limit: 2, wait_ms: 0 },
    }),
  },
  {
    name: "a failure's report",
    path: "/api/events/batch",
    body: async () => {
      const { command_id, attempt, step, execution_id } = await command();
      const error = { kind: "server_error", code: "HTTP_500", message: "broken", retryable: true, details: { a: 1 } };
      const event = { command_id, attempt, step, execution_id, event_type: "command.failed", error, meta: { a: 1 } };
      return { worker: "w", events: [{ ...event, created_at: new Date().toISOString(), duration_ms: 5 }] };
    },
  },
  {
    name: "a single event",
    path: "/api/events",
    body: async () => ({ ...endOf(await command(), "x")[0], worker: "w" }),
  },
  {
    name: "a claim",
    path: "/api/commands/claim",
    body: async () => ({ worker: "w", limit: 3, kinds: ["noop"], labels: { zone: "a" }, wait_ms: 0 }),
  },
  {
    name: "a worker's registration",
    path: "/api/worker/pool/register",
    body: async () => ({
      name: "w",
      capacity: 3,
      labels: { zone: "a" },
      capabilities: ["noop"],
      runtime: { pid: 1, hostname: "h", version: "1" },
    }),
  },
  {
    name: "a heartbeat",
    path: "/api/worker/pool/heartbeat",
    body: async () => ({ name: "w", running: [{ command_id: "1", attempt: 1 }], draining: false }),
  },
  {
    name: "a cancellation",
    path: "/api/executions/1/cancel",
    body: async () => ({ reason: "x", cascade: true }),
  },
];

for (const { name, path, body } of ROUTES) {
  test(`no body of ${name} gives a 500 (seed ${seed})`, async () => {
    const seen = { taken: 0, refused: 0 };
    if (!path.includes("cancel")) await answers(path, { method: "POST", body: JSON.stringify(await body()) }, seen);
    const property = fc.asyncProperty(fc.nat(), oddValue, async (at, odd) => {
      const sent = JSON.stringify(bent(await body(), (places) => at % places, odd));
      await answers(path, { method: "POST", ...(sent !== undefined && { body: sent }) }, seen);
    });
    await fc.assert(property, { seed, numRuns: RUNS, endOnFailure: true });
    assert.ok(seen.refused >= 5, `seed ${seed}: ${JSON.stringify(seen)}`);
    if (!path.includes("cancel")) assert.ok(seen.taken >= 1, `seed ${seed}: ${JSON.stringify(seen)}`);
  });
}

test(`no path or query of what is read gives a 500 (seed ${seed})`, async () => {
  const id = await work.execute("fuzz");
  const seen = { taken: 0, refused: 0 };
  const encoded = oddText.map((text) => encodeURIComponent(text.replace(/\p{Surrogate}/gu, "")));
  const cursor = fc.jsonValue().map((value) => Buffer.from(JSON.stringify(value) ?? "").toString("base64url"));
  const value = fc.oneof(encoded, cursor, fc.constantFrom("0", "1", "-1", "1e9", "99999999999999999999"));
  const address = fc.oneof(
    fc
      .tuple(fc.constantFrom("status", "path", "parent_execution_id", "since", "until", "cursor", "limit"), value)
      .map(([name, text]) => `/api/executions?${name}=${text}`),
    fc
      .tuple(fc.constantFrom("after", "cursor", "event_type", "limit"), value)
      .map(([name, text]) => `/api/executions/${id}/events?${name}=${text}`),
    fc.tuple(fc.constantFrom("", "/events", "/result"), value).map(([rest, text]) => `/api/executions/x${text}${rest}`),
    value.map((text) => `/api/executions/${id}/result?step=${text}`),
    value.map((text) => `/api/worker/pools?cursor=${text}`),
    value.map((text) => `/api/results/resolve?ref=${text}`),
    value.map((text) => `/api/results/resolve?ref=noetl://execution/${id}/${text}`),
    value.map((text) => `/api/events/batch/x${text}/status`),
    value.map((text) => `/api/catalog/entries/x${text}`),
  );
  await fc.assert(
    fc.asyncProperty(address, (path) => answers(path, {}, seen)),
    { seed, numRuns: 150, endOnFailure: true },
  );
});

test(`no query or body of a result gives a 500 (seed ${seed})`, async () => {
  const { command_id, attempt, execution_id } = await command();
  const good = {
    ref: `noetl://execution/${execution_id}/a`,
    worker: "w",
    command_id,
    attempt: String(attempt),
    ttl: "1h",
  };
  const seen = { taken: 0, refused: 0 };
  const property = fc.asyncProperty(
    fc.constantFrom("ref", "command_id", "attempt", "ttl", "scope", "none"),
    oddText.map((text) => text.replace(/\p{Surrogate}/gu, "")),
    fc.oneof(
      oddText,
      fc.jsonValue().map((value) => JSON.stringify(value)),
    ),
    async (name, text, body) => {
      const query = new URLSearchParams({ ...good, ...(name !== "none" && { [name]: text }) });
      await answers(`/api/results?${query}`, { method: "PUT", body }, seen);
    },
  );
  await fc.assert(property, { seed, numRuns: 80, endOnFailure: true });
  assert.ok(seen.taken >= 1 && seen.refused >= 5, `seed ${seed}: ${JSON.stringify(seen)}`);
});

test("the service is as well as before after all of that", async () => {
  await work.register("fuzz", TWO_STEPS);
  const id = await work.execute("fuzz");
  assert.equal((await work.runToEnd(id))["status"], "COMPLETED");
});
