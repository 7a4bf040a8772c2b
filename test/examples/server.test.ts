import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { EXAMPLES, ROOT, startExampleApi } from "./run-flow.ts";

/* The API server of the examples does what their README says. */

let api: Awaited<ReturnType<typeof startExampleApi>>;
before(async () => {
  api = await startExampleApi();
});
after(() => api.close());

async function get(path: string): Promise<{ status: number; headers: Headers; body: Record<string, unknown> }> {
  const response = await fetch(`${api.origin}${path}`);
  return {
    status: response.status,
    headers: response.headers,
    body: (await response.json()) as Record<string, unknown>,
  };
}

function pay(body: string, key: string): Promise<Response> {
  return fetch(`${api.origin}/payments`, { method: "POST", body, headers: { "idempotency-key": key } });
}

test("the users come in pages, and the last one has no cursor", async () => {
  const sizes: number[] = [];
  for (let cursor: unknown = ""; cursor !== null; ) {
    const { body } = await get(`/users?limit=10&cursor=${String(cursor)}`);
    sizes.push((body["users"] as unknown[]).length);
    cursor = body["next_cursor"];
  }
  assert.deepEqual(sizes, [10, 10, 3]);
});

test("the flaky endpoint fails as often as requested, for each key separately, and then starts again", async () => {
  const seen: number[] = [];
  for (const key of ["a", "a", "b", "a", "a"]) seen.push((await get(`/flaky/${key}?failures=2`)).status);
  assert.deepEqual(seen, [503, 503, 503, 200, 503]);
  assert.equal((await get("/flaky/c?failures=1&retry_after=7")).headers.get("retry-after"), "7");
});

test("a payment is made once for each idempotency key, and refused beyond the card's limit", async () => {
  const order = JSON.stringify({ order: "S-1", amount: 5 });
  const [first, again, other] = [await pay(order, "k1"), await pay(order, "k1"), await pay(order, "k2")];
  assert.deepEqual([first.status, again.status, other.status], [201, 200, 201]);
  assert.deepEqual(await again.json(), await first.json());
  assert.equal((await pay(JSON.stringify({ order: "S-2", amount: 501 }), "k3")).status, 402);
});

test("a report is published once for each idempotency key, to a channel that there is", async () => {
  const post = async (channel: string, key: string) => {
    const body = JSON.stringify({ channel, teams: {} });
    return await fetch(`${api.origin}/reports`, { method: "POST", body, headers: { "idempotency-key": key } });
  };
  const [first, again] = [await post("management", "r1"), await post("management", "r1")];
  assert.deepEqual([first.status, again.status, (await post("nobody", "r2")).status], [200, 200, 404]);
  assert.deepEqual(await again.json(), await first.json());
});

test("a delivery is not there until it was made", async () => {
  assert.equal((await get("/deliveries/2026-03-01")).status, 404);
  const made = await fetch(`${api.origin}/deliveries/2026-03-01`, { method: "POST", body: '{"rows": []}' });
  assert.deepEqual([made.status, (await get("/deliveries/2026-03-01")).body["rows"]], [201, []]);
});

test("what makes no sense gets an answer that says so, and the server stays up", async () => {
  assert.equal((await get("/nothing")).status, 404);
  assert.equal((await get("/quotes/east")).status, 404);
  assert.equal((await get("/quotes/%ff")).status, 400);
  assert.equal((await pay("{not json", "k4")).status, 400);
  assert.equal((await pay(`{"order": "${"x".repeat(70_000)}"}`, "k5")).status, 400);
  assert.deepEqual((await get("/health")).body, { status: "ok" });
});

test("a port that is taken is an error of one line", async () => {
  const script = join(ROOT, EXAMPLES, "server/api.mjs");
  const port = new URL(api.origin).port;
  const child = spawn(process.execPath, [script, "--port", port], { stdio: ["ignore", "ignore", "pipe"] });
  const [said, [code]] = await Promise.all([text(child.stderr), once(child, "close")]);
  assert.equal(code, 1);
  assert.match(said, /^The example API cannot listen on 127\.0\.0\.1:\d+: .*EADDRINUSE.*\n$/);
});
