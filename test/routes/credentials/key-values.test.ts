import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type Body, openApi } from "../../support/service/api.ts";
import { ONE_STEP, workWith } from "../../support/service/api-work.ts";

const api = await openApi();
const work = workWith(api);

before(() => work.register("t", ONE_STEP));

const path = (id: string, key = "") =>
  `/api/executions/${id}/transient${key === "" ? "" : `/${encodeURIComponent(key)}`}`;
const put = (id: string, key: string, value: unknown, more: Body = {}) =>
  work.send("PUT", path(id, key), JSON.stringify({ value, ...more }));

async function rows(): Promise<number> {
  const [row] = await api.database.sql<[{ rows: number }]>`select count(*)::int as rows from flow.transient`;
  return row.rows;
}

/** An execution that ended so many seconds ago. */
async function ended(id: string, seconds: number): Promise<void> {
  await work.runToEnd(id);
  await api.database.sql`
    update flow.execution set ended_at = now() - ${seconds}::float8 * interval '1 second' where execution_id = ${id}`;
}

test("a value is read as it was put, whatever JSON it is, and its revision grows", async () => {
  const id = await work.execute("t");
  let revision = 0;
  for (const value of [{ z: 1, a: ["\u0000", 1.5] }, [], "", 0, false, null]) {
    const saved = await put(id, "k", value);
    assert.equal(saved.status, 200, JSON.stringify(saved.body));
    assert.ok(Number(saved.body["revision"]) > revision);
    revision = Number(saved.body["revision"]);
    const { body } = await work.get(path(id, "k"));
    assert.deepEqual(body, { status: "ok", execution_id: id, key: "k", revision, expires_at: null, value });
  }
});

test("a value with a time of its own is gone after it", async () => {
  const id = await work.execute("t");
  const { body } = await put(id, "short", 1, { ttl_seconds: 0.05 });
  assert.ok(Math.abs(Date.parse(String(body["expires_at"])) - Date.now()) < 5_000);
  while ((await work.get(path(id, "short"))).status === 200);
  assert.equal((await work.get(path(id, "short"))).status, 404);
  assert.deepEqual((await work.get(path(id))).body["items"], []);
});

test("values of other executions, and keys with slashes, are other values; deleting twice is no error", async () => {
  const [one, other] = [await work.execute("t"), await work.execute("t")];
  for (const key of ["a/b", "a", "é b"]) await put(one, key, key);
  await put(other, "a", "other");
  assert.equal((await work.get(path(one, "a/b"))).body["value"], "a/b");
  assert.equal((await work.get(path(other, "a"))).body["value"], "other");
  for (const _ of [1, 2]) {
    const { status, body } = await work.send("DELETE", path(one, "a/b"));
    assert.deepEqual([status, body], [200, { status: "success", execution_id: one, key: "a/b" }]);
  }
  assert.equal((await work.get(path(one, "a/b"))).status, 404);
  assert.equal((await work.get(path(one, "a"))).status, 200);
});

test("the list goes by key, in pages, without values", async () => {
  const id = await work.execute("t");
  for (const key of ["b", "a", "c"]) await put(id, key, "s3cret");
  const first = (await work.get(`${path(id)}?limit=2`)).body as Body & { items: Body[] };
  assert.deepEqual(
    first.items.map(({ key, bytes, execution_id }) => [key, bytes, execution_id]),
    [
      ["a", 8, id],
      ["b", 8, id],
    ],
  );
  assert.ok(!JSON.stringify(first).includes("s3cret"));
  const second = (await work.get(`${path(id)}?cursor=${first["next_cursor"]}`)).body as Body & { items: Body[] };
  assert.deepEqual([second.items.map(({ key }) => key), second["next_cursor"]], [["c"], null]);
});

test("after the end values are still read for a day and no new ones are kept; then they go, and with their execution", async () => {
  const [young, old, open] = [await work.execute("t"), await work.execute("t"), await work.execute("t")];
  for (const id of [young, old, open]) await put(id, "k", 1);
  await ended(young, 80_000);
  await ended(old, 90_000);
  assert.equal((await put(young, "k", 2)).status, 409);
  await api.service.transient.sweep();
  assert.equal((await work.get(path(young, "k"))).body["value"], 1);
  assert.equal((await work.get(path(open, "k"))).body["value"], 1);
  assert.equal((await work.get(path(old, "k"))).status, 404);
  assert.equal((await work.send("DELETE", `/api/executions/${young}`)).status, 200);
  const left = await api.database.sql`select 1 from flow.transient where bucket = ${`execution:${young}`}`;
  assert.equal(left.length, 0);
});

test("values of executions that retention has deleted go too, and nothing of a key-value store does", async () => {
  const id = await work.execute("t");
  await put(id, "k", 1);
  await api.database
    .sql`insert into flow.transient (bucket, key, value) values ('execution-1', 'k', 'x'), ('sessions', 'k', 'x')`;
  await api.database.sql`delete from flow.execution where execution_id = ${id}`;
  await api.service.transient.sweep();
  assert.equal((await work.get(path(id, "k"))).status, 404);
  const left = await api.database
    .sql`select bucket from flow.transient where bucket not like 'execution:%' order by bucket`;
  assert.deepEqual(
    left.map(({ bucket }) => bucket),
    ["execution-1", "sessions"],
  );
});

test("what cannot be kept is refused, and nothing is", async () => {
  const id = await work.execute("t");
  const before = await rows();
  for (const [status, about, text] of [
    [404, path("4711", "k"), '{"value": 1}'],
    [404, path("x", "k"), '{"value": 1}'],
    [422, path(id, "k"), "{}"],
    [422, path(id, "k"), "1"],
    [422, path(id, "k"), ""],
    [422, path(id, "k"), '{"value": 1, "ttl_seconds": 0}'],
    [422, path(id, "k"), '{"value": 1, "ttl_seconds": -1}'],
    [422, path(id, "k"), '{"value": 1, "ttl_seconds": "60"}'],
    [422, path(id, "k"), '{"value": 1, "ttl_seconds": 1e300}'],
    [422, path(id, "\u0000"), '{"value": 1}'],
    [422, path(id, "x".repeat(256)), '{"value": 1}'],
    [413, path(id, "k"), JSON.stringify({ value: "x".repeat(262_143) })],
    [413, path(id, "k"), JSON.stringify({ value: "x".repeat(2_200_000) })],
  ] as const) {
    const { status: answered, body } = await work.send("PUT", about, text);
    assert.equal(answered, status, `${about} ${text.slice(0, 80)} ${JSON.stringify(body)}`);
  }
  assert.equal((await put(id, "edge", "x".repeat(262_142))).status, 200);
  assert.equal(await rows(), before + 1);
  for (const about of [path("4711"), path("4711", "k"), path(id, "none")])
    assert.equal((await work.get(about)).status, 404);
  assert.equal((await work.get(`${path(id)}?limit=0`)).status, 422);
  assert.equal((await work.get(`${path(id)}?cursor=x`)).status, 422);
});

test("an execution keeps a bounded number of values, and may write those again", async () => {
  const id = await work.execute("t");
  await api.database.sql`
    insert into flow.transient (bucket, key, value)
    select ${`execution:${id}`}, 'k' || n, '1' from generate_series(1, 1000) n`;
  const refused = await put(id, "one-more", 1);
  assert.deepEqual([refused.status, refused.body["code"]], [413, "TOO_LARGE"]);
  assert.equal((await put(id, "k5", 2)).status, 200);
  await work.send("DELETE", path(id, "k6"));
  assert.equal((await put(id, "one-more", 1)).status, 200);
});
