import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { Database } from "../../../src/repositories/database/database.ts";
import {
  deleteSilentRuntimes,
  deregisterWorker,
  type HeartbeatInput,
  listWorkers,
  recordHeartbeat,
  registerRuntime,
  signOffServer,
  touchServer,
} from "../../../src/repositories/workers/workers.ts";
import { type StoreSetup, storeSetup } from "../../support/database/store-setup.ts";
import { openServiceDatabase } from "../service-database.ts";

let database: Database;
let setup: StoreSetup;
before(async () => {
  database = await openServiceDatabase();
  setup = storeSetup(database);
});

const runtime = (name: string, runtimeId: string) => ({
  runtimeId,
  kind: "worker" as const,
  name,
  capacity: 8,
  labels: { zone: "b" },
  capabilities: ["http", "noop"],
  about: { pid: 1 },
});

const beat = (name: string, running: HeartbeatInput["running"] = [], draining = false) =>
  recordHeartbeat(database, { name, running, draining, leaseMs: 120_000, graceMs: 10_000 });

const NOTHING = { held: [], cancelled: [], ended: [], lost: [], unlisted: [], stopped: [] };

async function leaseSeconds(commandId: string): Promise<number> {
  const [row] = await database.sql<[{ rest: number }]>`
    select round(extract(epoch from lease_expires_at - now()))::int as rest from flow.command
    where command_id = ${commandId}`;
  return row.rest;
}

test("a worker that registers again keeps its row and its id, and is ready again", async () => {
  assert.deepEqual(
    { ...(await registerRuntime(database, runtime("again", "501"))) },
    { id: "501", released: [], isGone: true },
  );
  await deregisterWorker(database, "again");
  assert.deepEqual(
    { ...(await registerRuntime(database, { ...runtime("again", "502"), capacity: 2 })) },
    { id: "501", released: [], isGone: false },
  );
  const { items } = await listWorkers(database, { limit: 500 });
  const row = items.find(({ name }) => name === "again");
  assert.deepEqual(
    [row?.status, row?.capacity, row?.labels, row?.capabilities, row?.about],
    ["ready", 2, { zone: "b" }, ["http", "noop"], { pid: 1 }],
  );
});

test("a new process under a worker's name releases what the old one held, which is gone unless it signed off", async () => {
  const as = async (instance: string) => {
    const worker = { ...runtime("replaced", "503"), about: { instance }, instance };
    const { released, isGone } = await registerRuntime(database, worker);
    return { released, isGone };
  };
  await as("first");
  const commandId = await setup.held("replaced");
  assert.deepEqual(await as("first"), { released: [], isGone: true });
  assert.deepEqual(await as("second"), { released: [commandId], isGone: true });
  await deregisterWorker(database, "replaced", "second");
  assert.deepEqual(await as("third"), { released: [commandId], isGone: false });
});

test("a server and a worker of one name are two", async () => {
  await registerRuntime(database, runtime("both", "511"));
  assert.deepEqual(
    { ...(await registerRuntime(database, { ...runtime("both", "512"), kind: "server" })) },
    { id: "512", released: [], isGone: true },
  );
  assert.equal(await touchServer(database, "both"), true);
  assert.equal(await touchServer(database, "again"), false);
  await signOffServer(database, "both");
  assert.equal(await touchServer(database, "both"), false);
});

test("a heartbeat renews the leases of what the worker runs, also of those that were over", async () => {
  await setup.worker("w1");
  const [live, over] = [await setup.held("w1"), await setup.held("w1", { leaseSeconds: -5 })];
  const running = [live, over].map((commandId) => ({ commandId, attempt: 1 }));
  assert.deepEqual(await beat("w1", running), { ...NOTHING, held: [live, over] });
  assert.ok((await leaseSeconds(live)) >= 119);
  assert.ok((await leaseSeconds(over)) >= 119);
});

test("of many commands a heartbeat renews only leases that are no longer whole, and makes them half as long again", async () => {
  const { sql } = database;
  for (const [name, count] of [
    ["w-few", 256],
    ["w-many", 257],
  ] as const) {
    await setup.worker(name);
    const held: string[] = [];
    for (let command = 0; command < count; command += 1) held.push(await setup.held(name));
    const running = held.map((commandId) => ({ commandId, attempt: 1 }));
    const [first = "", second = ""] = held;
    await sql`update flow.command set lease_expires_at = now() - interval '5 s' where command_id = ${first}`;
    await sql`update flow.command set lease_expires_at = now() + interval '119 s' where command_id = ${second}`;
    const places = async () => {
      const rows = await sql<{ place: string }[]>`
        select ctid::text as place from flow.command where worker = ${name} order by command_id`;
      return rows.map(({ place }) => place);
    };
    assert.equal((await beat(name, running))?.held.length, count);
    const whole = name === "w-many" ? 180 : 120;
    for (const id of [first, second, held.at(-1) ?? ""]) {
      assert.ok(Math.abs((await leaseSeconds(id)) - whole) <= 2, `${name}: ${await leaseSeconds(id)}`);
    }
    const renewed = await places();
    assert.equal((await beat(name, running))?.held.length, count, "also those that need not be renewed");
    // A row that is written again has another place.
    if (name === "w-many") assert.deepEqual(await places(), renewed, "none is written");
    else
      assert.ok(
        (await places()).every((place, index) => place !== renewed[index]),
        "each is written",
      );
  }
});

test("a heartbeat returns the commands that were cancelled, ended or taken over, and renews none of them", async () => {
  await setup.worker("w2");
  const [cancelled, ended, retaken, foreign] = [
    await setup.held("w2"),
    await setup.held("w2"),
    await setup.held("w2"),
    await setup.held("somebody"),
  ];
  const { commandId: waiting } = await setup.command();
  const end = (commandId: string, status: string) => database.sql`
    update flow.command set status = ${status}, worker = null, claimed_at = null, lease_expires_at = null, ended_at = now()
    where command_id = ${commandId}`;
  await end(cancelled, "CANCELLED");
  await end(ended, "COMPLETED");
  await database.sql`update flow.command set attempt = 2 where command_id = ${retaken}`;
  const before = await leaseSeconds(foreign);
  const listed = [cancelled, ended, retaken, foreign, waiting];
  const answer = await beat(
    "w2",
    listed.map((commandId) => ({ commandId, attempt: 1 })),
  );
  const lost = [retaken, foreign, waiting];
  assert.deepEqual(
    { ...answer, lost: answer?.lost.sort() },
    { ...NOTHING, cancelled: [cancelled], ended: [ended], lost: lost.sort() },
  );
  assert.ok((await leaseSeconds(foreign)) <= before);
});

test("a first claim whose command has no row has ended; a later one is lost", async () => {
  await setup.worker("w-gone");
  const running = [
    { commandId: "4711", attempt: 1 },
    { commandId: "4712", attempt: 2 },
  ];
  assert.deepEqual(await beat("w-gone", running), { ...NOTHING, ended: ["4711"], lost: ["4712"] });
});

test("a command that was cancelled under another claim is lost to the older one, not cancelled", async () => {
  await setup.worker("w3");
  const commandId = await setup.held("w3");
  await database.sql`
    update flow.command set status = 'CANCELLED', attempt = 2, worker = null, claimed_at = null, lease_expires_at = null,
      ended_at = now() where command_id = ${commandId}`;
  assert.deepEqual(await beat("w3", [{ commandId, attempt: 1 }]), { ...NOTHING, lost: [commandId] });
});

test("a command that the worker does not list is returned after ten seconds, and keeps its lease", async () => {
  await setup.worker("w4");
  const [old, young] = [await setup.held("w4"), await setup.held("w4", { claimedSeconds: -5 })];
  assert.deepEqual(await beat("w4"), { ...NOTHING, unlisted: [old] });
  assert.ok((await leaseSeconds(old)) <= 60);
  assert.deepEqual(await beat("w4", [{ commandId: old, attempt: 1 }]), { ...NOTHING, held: [old] });
  assert.ok(young);
});

test("a worker that is not registered, or has signed off, gets that answer, and nothing is renewed", async () => {
  const commandId = await setup.held("nobody");
  assert.equal(await beat("nobody", [{ commandId, attempt: 1 }]), undefined);
  assert.ok((await leaseSeconds(commandId)) <= 60);
  await setup.worker("gone", { status: "offline" });
  assert.equal(await beat("gone"), undefined);
});

test("a worker that drains stays so until it registers again", async () => {
  await registerRuntime(database, runtime("leaving", "521"));
  await beat("leaving", [], true);
  await beat("leaving");
  const status = async () => {
    const { items } = await listWorkers(database, { limit: 500 });
    return items.find(({ name }) => name === "leaving")?.status;
  };
  assert.equal(await status(), "draining");
  await registerRuntime(database, runtime("leaving", "522"));
  assert.equal(await status(), "ready");
});

test("a heartbeat does not wait for a row that is being written, and does not take it for lost", async () => {
  await setup.worker("w5");
  const commandId = await setup.held("w5");
  await database.sql.begin(async (sql) => {
    await sql`update flow.command set step = 'b' where command_id = ${commandId}`;
    assert.deepEqual(await beat("w5", [{ commandId, attempt: 1 }]), { ...NOTHING, held: [commandId] });
  });
  assert.ok((await leaseSeconds(commandId)) <= 60);
});

test("signing off ends the leases of what the worker holds, and says which", async () => {
  await setup.worker("w6");
  const commandId = await setup.held("w6");
  const other = await setup.held("w5");
  assert.deepEqual(await deregisterWorker(database, "w6"), [commandId]);
  assert.ok((await leaseSeconds(commandId)) <= 0);
  assert.ok((await leaseSeconds(other)) > 0);
  assert.deepEqual(
    (await setup.store.claimableCommands([commandId])).map((command) => command.commandId),
    [commandId],
  );
  assert.equal(await deregisterWorker(database, "never registered"), undefined);
});

test("the pool is listed by name, in pages, with what each holds and since when it is silent", async () => {
  await setup.worker("z1", { silentSeconds: 30 });
  await setup.worker("z2");
  await setup.held("z1");
  await setup.held("z1");
  const first = await listWorkers(database, { limit: 1, cursor: "z" });
  assert.deepEqual([first.items.map(({ name }) => name), first.next], [["z1"], "z1"]);
  assert.equal(first.items[0]?.running, 2);
  assert.ok((first.items[0]?.heartbeatAgeMs ?? 0) >= 30_000);
  const second = await listWorkers(database, { limit: 1, cursor: "z1" });
  assert.deepEqual([second.items.map(({ name }) => name), second.next], [["z2"], undefined]);
});

test("rows of processes that are silent for long are deleted", async () => {
  await setup.worker("ancient", { silentSeconds: 1_000_000 });
  assert.equal(await deleteSilentRuntimes(database, 500_000_000), 1);
});
