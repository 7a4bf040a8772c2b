import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { JsonObject } from "../../src/schema/words/json.ts";
import { closedPort } from "../support/servers/http-server.ts";
import { type RunReport, runExample, startExampleApi, statuses } from "./run-flow.ts";

/* The examples that talk to an API, against the server that comes with them. */

let api: Awaited<ReturnType<typeof startExampleApi>>;
before(async () => {
  api = await startExampleApi();
});
after(() => api.close());

function run(name: string, inputs: Parameters<typeof runExample>[1] = {}): Promise<RunReport> {
  return runExample(name, { base_url: api.origin, ...inputs });
}

test("paginated_users gathers every page, whatever its size", async () => {
  for (const size of [10, 23, 100]) {
    const report = await run("paginated_users", { page_size: size });
    assert.equal(report.status, "COMPLETED", report.stderr);
    const { teams, active } = report.result as { teams: Record<string, string[]>; active: number };
    // 23 users, of whom every fourth is not active.
    assert.equal(active, 18);
    assert.deepEqual(teams["build"], ["User 01", "User 07", "User 10", "User 13", "User 19", "User 22"]);
    assert.deepEqual(Object.keys(teams).sort(), ["build", "data", "sales"]);
  }
});

test("paginated_users fails without an answer, and names the address", async () => {
  const report = await runExample("paginated_users", { base_url: `http://127.0.0.1:${await closedPort()}` });
  assert.equal(report.status, "FAILED");
  assert.equal(report.error?.code, "ECONNREFUSED");
  assert.match(report.error?.message ?? "", /GET http:\/\/127\.0\.0\.1:\d+\/users/);
});

test("joined_pages gives one list of all pages, whatever their size", async () => {
  for (const size of [5, 100]) {
    const report = await run("joined_pages", { page_size: size });
    assert.deepEqual(report.result, { count: 23, teams: ["build", "data", "sales"], last: "User 23" }, report.stderr);
  }
});

test("flaky_retry tries again until the endpoint has recovered", async () => {
  const report = await run("flaky_retry", { failures: 3, delay: 0.05 });
  assert.deepEqual(report.result, { recovered: true, message: "It works again" });
  // 0.05, 0.1 and 0.2 s, of which jitter may take half.
  assert.ok(report.duration_ms >= 175, `${report.duration_ms} ms`);
});

test("flaky_retry waits as long as the server asks it to", async () => {
  const report = await run("flaky_retry", { failures: 1, delay: 0.01, retry_after: 1 });
  assert.deepEqual(report.result, { recovered: true, message: "It works again" });
  assert.ok(report.duration_ms >= 1000, `${report.duration_ms} ms`);
});

test("flaky_retry takes an arc when the endpoint never recovers", async () => {
  const report = await run("flaky_retry", { failures: 99, delay: 0.01 });
  assert.equal(report.status, "COMPLETED", report.stderr);
  const { recovered, attempts, why } = report.result as { recovered: boolean; attempts: number; why: string };
  assert.deepEqual([recovered, attempts], [false, 5]);
  assert.match(why, /answered 503: Try again later/);
  assert.deepEqual(statuses(report), { fetch: "FAILED", give_up: "COMPLETED", end: "SKIPPED" });
});

test("keychain reads what a token and a session open, and shows neither", async () => {
  const data = { client_id: "flow", client_secret: "example", token_url: `${api.origin}/token` };
  const run = (workload: JsonObject, secret = "example") => {
    const client = { type: "oauth2", data: { ...data, client_secret: secret } };
    const env = { FLOW_CREDENTIAL_EXAMPLE_CLIENT: JSON.stringify(client) };
    return runExample("keychain", { base_url: api.origin, ...workload }, env);
  };
  const good = await run({});
  assert.deepEqual(good.result, { read: true, team: "sales", contacts: 7 });
  assert.doesNotMatch(JSON.stringify(good), /token-|session-/);
  const nobody = (await run({ team: "nobody" })).result as { why: string };
  assert.match(nobody.why, /Entry 'contacts' not found: POST .*\/sessions answered 422: There is no team 'nobody'/);
  const wrong = (await run({}, "guessed")).result as { why: string };
  assert.match(wrong.why, /Entry 'api' not found: POST .*\/token answered 401: invalid_client/);
});

test("checkout charges an order once, however often it is run", async () => {
  const first = await run("checkout", { order: "C-1" });
  const second = await run("checkout", { order: "C-1" });
  const other = await run("checkout", { order: "C-2" });
  assert.equal(first.status, "COMPLETED", first.stderr);
  assert.deepEqual(second.result, first.result);
  assert.notDeepEqual(other.result, first.result);
  assert.match(JSON.stringify(first.result), /"payment":"pay-\d+"/);
});

test("checkout parks an order whose card is refused by the sub-playbook", async () => {
  const report = await run("checkout", { amount: 900 });
  assert.equal(report.status, "COMPLETED", report.stderr);
  const { status, code, why } = report.result as { status: string; code: string; why: string };
  assert.deepEqual([status, code], ["parked", "HTTP_402"]);
  assert.match(why, /examples\/parts\/charge_card.*answered 402: The card was refused: 900 is over its limit/);
});

test("publish_report publishes once for a channel and a day, however often it is run", async () => {
  const first = await run("publish_report");
  assert.equal(first.status, "COMPLETED", first.stderr);
  assert.deepEqual((await run("publish_report")).result, first.result);
  assert.notDeepEqual((await run("publish_report", { channel: "management" })).result, first.result);
});

test("await_delivery asks until the delivery is there", async () => {
  const running = run("await_delivery", { day: "2026-02-01", seconds: 0.05 });
  const rows = [
    { item: "A", amount: 2 },
    { item: "B", amount: 5 },
  ];
  await fetch(`${api.origin}/deliveries/2026-02-01`, { method: "POST", body: JSON.stringify({ rows }) });
  const report = await running;
  assert.deepEqual(report.result, { day: "2026-02-01", items: 2, amount: 7 }, report.stderr);
});

test("poll_export looks until its export is ready", async () => {
  const report = await run("poll_export", { every: "50ms" });
  assert.deepEqual(report.result, { rows: 42, looks: 3 }, report.stderr);
});

test("price_alert leaves out a supplier who does not answer, and fails when none does", async () => {
  assert.deepEqual((await run("price_alert")).result, { alert: true, price: 9.9, asked: 3, failed: 1 });
  assert.equal((await run("price_alert", { suppliers: ["east"] })).status, "FAILED");
});

test("compare_quotes asks all suppliers and goes on without the one who does not answer", async () => {
  const report = await run("compare_quotes");
  assert.deepEqual(report.result, { offers: 3, best: { supplier: "south", price: 9.9, days: 9 } });
  assert.equal(report.steps.filter((step) => step.name === "compare").length, 1);
});

test("compare_quotes leaves out the branch whose condition does not hold", async () => {
  const report = await run("compare_quotes", { with_east: false, days_max: 5 });
  assert.deepEqual(report.result, { offers: 2, best: { supplier: "north", price: 12.5, days: 4 } });
  assert.equal(statuses(report)["east"], "SKIPPED");
});
