import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type Body, openApi } from "../../support/service/api.ts";
import { type Claimed, ONE_STEP, workWith } from "../../support/service/api-work.ts";

const api = await openApi();
const work = workWith(api);

before(() => work.register("p", ONE_STEP));

const pool = (action: string, body: Body) => work.post(`/api/worker/pool/${action}`, body);
const register = (name: string, more: Body = {}) => pool("register", { name, capacity: 4, ...more });

async function find(name: string): Promise<Body | undefined> {
  const { body } = await work.get("/api/worker/pools?limit=500");
  return (body["items"] as Body[]).find((item) => item["name"] === name);
}

/** A command that `worker` holds. */
async function held(worker: string): Promise<Claimed> {
  const id = await work.execute("p");
  for (;;) {
    const command = (await work.claim(worker, 100)).find(({ execution_id }) => execution_id === id);
    if (command !== undefined) return command;
  }
}

/** As if it had been claimed a minute ago. */
async function age({ command_id }: Claimed): Promise<void> {
  await api.database
    .sql`update flow.command set claimed_at = now() - interval '1 minute' where command_id = ${command_id}`;
}

test("a worker is registered, shown with what it said, and keeps its id when it registers again", async () => {
  const about = { labels: { zone: "a" }, capabilities: ["noop", "http"], runtime: { pid: 7, hostname: "h" } };
  const first = await register("alpha", about);
  assert.deepEqual([first.status, first.body["status"]], [200, "ok"]);
  const again = await register("alpha", about);
  assert.equal(again.body["runtime_id"], first.body["runtime_id"]);
  const { heartbeat_at, heartbeat_age_ms, created_at, ...shown } = (await find("alpha")) ?? {};
  assert.deepEqual(shown, {
    runtime_id: first.body["runtime_id"],
    name: "alpha",
    status: "ready",
    capacity: 4,
    running: 0,
    ...about,
  });
  assert.ok(Number(heartbeat_age_ms) >= 0);
  assert.ok(!Number.isNaN(Date.parse(String(heartbeat_at))) && !Number.isNaN(Date.parse(String(created_at))));
});

test("a heartbeat of a name that is not registered is 404 `unknown`: register again", async () => {
  const { status, body } = await pool("heartbeat", { name: "nobody", running: [] });
  assert.deepEqual([status, body["code"]], [404, "unknown"]);
});

test("a heartbeat renews the leases of what the worker runs, and of nothing else", async () => {
  await register("beta");
  await register("gamma");
  const [own, other] = [await held("beta"), await held("gamma")];
  await api.database.sql`
    update flow.command set lease_expires_at = now() + interval '1 second'
    where command_id in (${own.command_id}, ${other.command_id})`;
  const running = [own, other].map(({ command_id, attempt }) => ({ command_id, attempt }));
  const { status, body } = await pool("heartbeat", { name: "beta", running });
  assert.deepEqual([status, body], [200, { status: "ok", cancel: [], lost: [other.command_id], lease_ms: 120_000 }]);
  const rows = await api.database.sql<{ isRenewed: boolean }[]>`
    select lease_expires_at > now() + interval '1 minute' as "isRenewed" from flow.command
    where command_id in (${own.command_id}, ${other.command_id}) order by command_id`;
  assert.deepEqual(
    rows.map(({ isRenewed }) => isRenewed),
    [true, false],
  );
});

test("a heartbeat's answer lists the commands to stop and those lost to another attempt", async () => {
  await register("delta");
  const [cancelled, lost] = [await held("delta"), await held("delta")];
  await work.post(`/api/executions/${cancelled.execution_id}/cancel`);
  await api.database.sql`update flow.command set attempt = 2 where command_id = ${lost.command_id}`;
  const running = [cancelled, lost].map(({ command_id, attempt }) => ({ command_id, attempt }));
  const { body } = await pool("heartbeat", { name: "delta", running });
  assert.deepEqual(body, { status: "ok", cancel: [cancelled.command_id], lost: [lost.command_id], lease_ms: 120_000 });
});

test("what the worker holds and does not list is offered to others: the answer to its claim was lost", async () => {
  await register("epsilon");
  const command = await held("epsilon");
  // Claimed a moment ago, its answer may still be on its way.
  await pool("heartbeat", { name: "epsilon", running: [] });
  assert.deepEqual((await work.post("/api/commands/claim", { worker: "next", limit: 10 })).body, { commands: [] });
  await age(command);
  await pool("heartbeat", { name: "epsilon", running: [] });
  const [again] = await work.claim("zeta", 1);
  assert.deepEqual([again?.command_id, again?.attempt], [command.command_id, 2]);
});

test("a worker that signs off is offline, and what it still holds goes to others at once", async () => {
  await register("eta");
  const command = await held("eta");
  const { status, body } = await pool("deregister", { name: "eta" });
  assert.deepEqual([status, body], [200, { status: "ok" }]);
  assert.equal((await find("eta"))?.["status"], "offline");
  const [again] = await work.claim("theta", 1);
  assert.deepEqual([again?.command_id, again?.attempt], [command.command_id, 2]);
  assert.equal((await pool("heartbeat", { name: "eta", running: [] })).status, 404);
  assert.equal((await pool("deregister", { name: "never-there" })).status, 200);
});

test("a worker that drains or was silent for too long is shown as such", async () => {
  await register("iota");
  await pool("heartbeat", { name: "iota", running: [], draining: true });
  assert.equal((await find("iota"))?.["status"], "draining");
  await api.database.sql`update flow.runtime set heartbeat_at = now() - interval '2 minutes' where name = 'iota'`;
  assert.equal((await find("iota"))?.["status"], "stale");
});

test("the pool comes in pages, in the order of names", async () => {
  const names: unknown[] = [];
  let path = "/api/worker/pools?limit=2";
  for (;;) {
    const { body } = await work.get(path);
    names.push(...(body["items"] as Body[]).map(({ name }) => name));
    if (body["next_cursor"] === null) break;
    path = `/api/worker/pools?limit=2&cursor=${body["next_cursor"]}`;
  }
  assert.deepEqual(names, [...names].sort());
  assert.equal(new Set(names).size, names.length);
  assert.ok(names.includes("alpha") && names.includes("iota"));
});

test("a new process with a worker's name takes over its commands at once, and the old one learns that it was replaced", async () => {
  const as = (instance: string) => register("kappa", { runtime: { instance } });
  await as("first");
  const command = await held("kappa");
  const running = [{ command_id: command.command_id, attempt: command.attempt }];
  const beat = (instance: string, runs: Body[] = []) => pool("heartbeat", { name: "kappa", instance, running: runs });
  const { body } = await beat("first", running);
  assert.deepEqual([body["cancel"], body["lost"], body["lease_ms"]], [[], [], 120_000]);
  // Registered again by the same process, as when the server had forgotten it: nothing is taken from it.
  await as("first");
  assert.deepEqual((await beat("first", running)).body["lost"], []);
  assert.deepEqual(await work.claim("kappa", 1), []);
  assert.equal((await as("second")).body["lease_ms"], 120_000);
  const taken = async (): Promise<Claimed> => {
    for (;;) {
      const found = (await work.claim("kappa", 100)).find(({ command_id }) => command_id === command.command_id);
      if (found !== undefined) return found;
    }
  };
  assert.equal((await taken()).attempt, command.attempt + 1);
  const replaced = await beat("first", running);
  assert.deepEqual([replaced.status, replaced.body["code"]], [409, "CONFLICT"]);
  assert.match(String(replaced.body["error"]), /FLOW_WORKER_NAME/);
  // Its leaving is none of the other's.
  await pool("deregister", { name: "kappa", instance: "first" });
  assert.equal((await find("kappa"))?.["status"], "ready");
  assert.equal((await beat("second", [{ command_id: command.command_id, attempt: command.attempt + 1 }])).status, 200);
  // A client that says nothing of its process is taken by its name, as ever.
  assert.equal((await pool("heartbeat", { name: "kappa", running: [] })).status, 200);
  await pool("deregister", { name: "kappa", instance: "second" });
  assert.equal((await beat("second")).status, 404);
});

test("registrations and heartbeats that make no sense are 422", async () => {
  for (const [action, body] of [
    ["register", {}],
    ["register", { name: "x" }],
    ["register", { name: "", capacity: 1 }],
    ["register", { name: "a\u0000b", capacity: 1 }],
    ["register", { name: "x", capacity: 0 }],
    ["register", { name: "x", capacity: 1, labels: { a: 1 } }],
    ["register", { name: "x", capacity: 1, labels: { a: "\ud800" } }],
    ["register", { name: "x", capacity: 1, labels: { "\u0000": "a" } }],
    ["register", { name: "x", capacity: 1, runtime: { hostname: "\u0000" } }],
    ["heartbeat", { name: "x" }],
    ["heartbeat", { name: "x", running: [{ command_id: "a", attempt: 1 }] }],
    ["heartbeat", { name: "x", running: [{ command_id: "1", attempt: 0 }] }],
    ["deregister", {}],
  ] as const) {
    const { status, body: answer } = await pool(action, body as Body);
    assert.deepEqual([status, answer["code"]], [422, "INVALID_INPUT"], `${action} ${JSON.stringify(body)}`);
  }
});
