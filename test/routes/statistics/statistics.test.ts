import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { StatsAnswer } from "../../../src/schema/api/overview.ts";
import { countEnded } from "../../../src/services/statistics/count-executions.ts";
import { openApi, TOKENS } from "../../support/service/api.ts";
import { ONE_STEP, workWith } from "../../support/service/api-work.ts";
import { addUser, allow } from "../../support/service/users.ts";

/* Statistics of executions as they run: what ends is counted, and a user sees the numbers of playbooks that they may view. */

const api = await openApi();
const work = workWith(api);
const AROUND = `
  - step: again
    tool: { kind: noop }
    next: { arcs: [{ step: again, when: "{{ (round | default(1)) < 3 }}", set: { round: "{{ (round | default(1)) + 1 }}" } }] }
`;
before(async () => {
  for (const path of ["stats/a", "stats/deep/b", "other/c"]) await work.register(path, ONE_STEP);
});

async function stats(query: Record<string, string>): Promise<StatsAnswer> {
  await countEnded(api.database, 1_000);
  const { status, body } = await work.get(`/api/stats?${new URLSearchParams(query)}`);
  assert.equal(status, 200, JSON.stringify(body));
  return body as unknown as StatsAnswer;
}

test("an execution counts when it has ended, with its steps, and still when it is deleted", async () => {
  const id = await work.execute("stats/a");
  assert.deepEqual((await stats({ path: "stats/a" })).total.counts, { COMPLETED: 0, FAILED: 0, CANCELLED: 0 });
  await work.runToEnd(id);
  assert.equal((await work.send("DELETE", `/api/executions/${id}`)).status, 200);
  const found = await stats({ path: "stats/a", bucket: "1m" });
  assert.deepEqual(found.total.counts, { COMPLETED: 1, FAILED: 0, CANCELLED: 0 });
  assert.equal(found.total.success_rate, 1);
  assert.ok(found.total.duration !== null);
  assert.deepEqual(
    found.steps.map(({ path, step: name, count, failed }) => [path, name, count, failed]),
    [["stats/a", "start", 1, 0]],
  );
  assert.equal(
    found.buckets.reduce((sum, { counts }) => sum + counts.COMPLETED, 0),
    1,
  );
});

test("a cancelled execution counts as such, and its steps do not", async () => {
  const id = await work.execute("stats/deep/b");
  await work.claim("w");
  await work.post(`/api/executions/${id}/cancel`);
  const { total, steps } = await stats({ path: "stats/deep/b" });
  assert.deepEqual(
    [total.counts, total.success_rate, total.duration],
    [{ COMPLETED: 0, FAILED: 0, CANCELLED: 1 }, null, null],
  );
  assert.deepEqual(steps, []);
});

test("what a rerun takes over counts where it ran", async () => {
  await work.register(
    "stats/two",
    `  - step: one
    tool: { kind: python, code: "return 1" }
    next: { arcs: [{ step: two }] }
  - step: two
    tool: { kind: python, code: "return 2" }
`,
  );
  const id = await work.execute("stats/two");
  await work.runToEnd(id);
  const { status, body } = await work.post(`/api/executions/${id}/rerun`, { from: ["two"] });
  assert.equal(status, 202, JSON.stringify(body));
  await work.runToEnd(String(body["execution_id"]));
  const { total, steps } = await stats({ path: "stats/two" });
  assert.equal(total.counts.COMPLETED, 2);
  assert.deepEqual(Object.fromEntries(steps.map(({ step, count }) => [step, count])), { one: 1, two: 2 });
  // A worker had to take these: three commands waited.
  assert.ok(total.waiting !== null);
});

test("a step that an arc leads back to counts each of its runs", async () => {
  await work.register("stats/around", AROUND);
  await work.runToEnd(await work.execute("stats/around"));
  const { steps, total } = await stats({ path: "stats/around" });
  assert.deepEqual([steps.length, steps[0]?.count], [1, 3]);
  // Nothing in it has to be done by a worker.
  assert.equal(total.waiting, null);
});

test("a user gets the numbers of playbooks that they may view", async () => {
  const user = await addUser(api.database);
  await allow(api.database, user, [{ allow: "stats/*", can: ["view"] }]);
  await work.runToEnd(await work.execute("other/c"));
  await work.runToEnd(await work.execute("stats/a"));
  await countEnded(api.database, 1_000);
  const headers = { authorization: `Bearer ${TOKENS.operator}`, "x-flow-session": user.tokenSha256 };
  const seen = async (query: string) => {
    const response = await api.guarded.request(`/api/stats?${query}`, { headers });
    return { status: response.status, body: (await response.json()) as StatsAnswer };
  };
  const { body } = await seen("group=path");
  const paths = (body.paths ?? []).map(({ path }) => path);
  assert.ok(paths.includes("stats/a") && !paths.includes("other/c"), paths.join());
  assert.ok(body.steps.every(({ path }) => path.startsWith("stats/")));
  assert.deepEqual([(await seen("path=stats/a")).status, (await seen("path=other/c")).status], [200, 403]);
  assert.equal((await seen("path=other/*")).body.total.counts.COMPLETED, 0);
});

test("an invalid bucket, time or order is refused with its name", async () => {
  for (const [query, name] of [
    ["bucket=2h", "bucket"],
    ["since=yesterday", "since"],
    ["since=2026-11-22&until=2026-11-21", "since"],
    ["bucket=1m&since=2026-01-01&until=2026-02-01", "since"],
    ["group=step", "group"],
    ["sort=x", "sort"],
    ["path=", "path"],
  ] as const) {
    const { status, body } = await work.get(`/api/stats?${query}`);
    assert.equal(status, 422, query);
    assert.match(JSON.stringify(body), new RegExp(`"path":"${name}"`), query);
  }
});
