import assert from "node:assert/strict";
import { before, test } from "node:test";
import { createPostgresExecutionStore } from "../../src/adapters/postgres-execution-store.ts";
import type { BatchChange, ExecutionChange, ExecutionStore } from "../../src/ports/execution-store.ts";
import type { Database } from "../../src/repositories/database/database.ts";
import { unavailable, violatedConstraint } from "../../src/repositories/database/error-codes.ts";
import { open, openServiceDatabase } from "../repositories/service-database.ts";
import { CLAIMED, SHA256, storeRows } from "../support/database/store-rows.ts";
import { POLICY } from "../support/database/store-setup.ts";

// The port as PostgreSQL keeps it, over a pool as the service opens it for flushes.

let database: Database;
let store: ExecutionStore;
const rows = storeRows();
before(async () => {
  database = await openServiceDatabase();
  store = openStore();
});

/** A store as one more server has it. */
function openStore(processor = "server-1", flushDatabase = openFlushDatabase()): ExecutionStore {
  return createPostgresExecutionStore({ database, flushDatabase, policy: POLICY, processor });
}

function openFlushDatabase(): Database {
  const { host, port, database: name, user, pass } = database.sql.options;
  return open(`postgres://${user}:${pass}@${host[0]}:${port[0]}/${name}`, { byKey: true, connectionsMax: 1 });
}

const write = (...executions: ExecutionChange[]) => store.flush({ executions, batches: [] });
const eventIds = async (executionId: string) =>
  (await store.eventsAfter(executionId, 0, 100)).map(({ event_id }) => event_id);

async function begun(): Promise<ExecutionChange> {
  const change = rows.begin();
  assert.deepEqual([...(await write(change)).moved], [change.executionId]);
  return change;
}

async function commandRow(commandId: string) {
  const [row] = await database.sql`
    select status, attempt, worker, claimed_at, lease_expires_at, ended_at from flow.command
    where command_id = ${commandId}`;
  return row;
}

test("an execution that begins is found again as it was written", async () => {
  const change = rows.begin({ deadlineAt: Date.parse("2030-01-01T00:00:00.250Z") });
  await write({ ...change, snapshot: { eventId: change.lastEventId, format: 1, state: '{"a":"\\u0000"}' } });
  assert.deepEqual(await store.find(change.executionId), {
    executionId: change.executionId,
    catalogId: "1",
    path: "jobs/nightly",
    version: 3,
    status: "RUNNING",
    lastEventId: change.lastEventId,
    parentExecutionId: null,
    rootExecutionId: change.executionId,
    startedBy: null,
    snapshot: { eventId: change.lastEventId, format: 1, state: '{"a":"\\u0000"}' },
  });
  const [row] = await database.sql<[{ deadline_at: Date }]>`
    select deadline_at from flow.execution where execution_id = ${change.executionId}`;
  assert.equal(row.deadline_at.toISOString(), "2030-01-01T00:00:00.250Z");
});

test("an execution begins with its first event, and never later than it is written", async () => {
  const at = Date.now();
  const [behind, ahead, unsaid] = [at - 60_000, at + 3_600_000, undefined].map((startedAt) =>
    rows.begin(startedAt === undefined ? {} : { startedAt }),
  );
  assert.ok(behind && ahead && unsaid);
  await write(behind, ahead, unsaid);
  const startOf = async ({ executionId }: ExecutionChange) => {
    const [row] = await database.sql<[{ started_at: Date }]>`
      select started_at from flow.execution where execution_id = ${executionId}`;
    return row.started_at.getTime() - at;
  };
  assert.equal(await startOf(behind), -60_000, "by a server whose clock is behind the database's");
  assert.ok((await startOf(ahead)) < 60_000, "by one whose clock is ahead");
  assert.ok(Math.abs(await startOf(unsaid)) < 60_000);
});

test("an execution that was never started is not found", async () => {
  assert.equal(await store.find("1"), undefined);
  assert.deepEqual(await store.eventsAfter("1", 0, 10), []);
});

test("a flush returns the time of its write, by the database's clock: leases count from it", async () => {
  const change = rows.begin();
  const issued = rows.issue(change, CLAIMED);
  const { at } = await write({ ...change, issued: [issued] });
  const row = await commandRow(issued.commandId);
  assert.equal(row?.["lease_expires_at"].getTime(), at + 120_000);
  assert.equal(row?.["claimed_at"].getTime(), at);
});

test("a change that was decided on an older event writes nothing of its execution, and all of the others", async () => {
  const [stale, sound] = [await begun(), await begun()];
  const newer = rows.follow(stale);
  await write(newer);
  const command = rows.issue(stale);
  const late = rows.follow(stale, {
    issued: [command],
    snapshot: { eventId: stale.lastEventId + 1, format: 1, state: "{}" },
  });
  const { moved } = await write(late, rows.follow(sound));
  assert.deepEqual([...moved], [sound.executionId]);
  assert.deepEqual(await eventIds(stale.executionId), [stale.lastEventId, newer.lastEventId]);
  assert.equal((await store.find(stale.executionId))?.snapshot, null);
  assert.equal(await commandRow(command.commandId), undefined);
  assert.equal((await eventIds(sound.executionId)).length, 2);
});

test("an execution whose id is taken is left out as a whole", async () => {
  const change = await begun();
  const twin = rows.begin({ rootExecutionId: change.executionId });
  const { moved } = await write({ ...twin, executionId: change.executionId });
  assert.equal(moved.size, 0);
  assert.deepEqual(await eventIds(change.executionId), [change.lastEventId]);
});

const OF_START = {
  actorKind: "operator",
  action: "playbook.execute",
  resource: "playbook/a",
  rule: "x",
  result: "allow",
} as const;

test("rows of the audit log are written with their execution, in any number and with any text, and not without it", async () => {
  const audit = (executionId: string) => [
    { ...OF_START, executionId, address: `\u001e\u0000"\ud800\n`, detail: { text: "\u001e" } },
    { ...OF_START, action: "playbook.view", executionId },
  ];
  const changes = Array.from({ length: 70 }, () => rows.begin());
  await write(
    ...changes.map((change) => ({ ...change, start: { ...change.start!, audit: audit(change.executionId) } })),
  );
  const auditOf = async (executionId: string) => [
    ...(await database.sql`
      select action, result, address, detail, chain is not null as is_chained from auth.audit_log
      where execution_id = ${executionId} order by audit_id`),
  ];
  const common = { result: "allow", is_chained: true };
  for (const { executionId } of changes) {
    assert.deepEqual(await auditOf(executionId), [
      { ...common, action: "playbook.execute", address: `\u001e\ufffd"\ufffd\n`, detail: { text: "\u001e" } },
      { ...common, action: "playbook.view", address: null, detail: null },
    ]);
  }
  const [taken] = changes;
  const { executionId } = taken!;
  const twin = rows.begin({ rootExecutionId: executionId });
  await write({ ...twin, executionId, start: { ...twin.start!, audit: audit(executionId) } });
  assert.equal((await auditOf(executionId)).length, 2);
});

test("of two servers that decided on the same event exactly one writes, however they meet", async () => {
  const other = openStore("server-2");
  for (let round = 0; round < 20; round += 1) {
    const shared = await Promise.all([begun(), begun(), begun()]);
    const changes = () => shared.map((change) => rows.follow(change));
    // In opposite orders, which would be a deadlock if rows were locked so.
    const [one, two] = await Promise.all([
      store.flush({ executions: changes(), batches: [] }),
      other.flush({ executions: changes().reverse(), batches: [] }),
    ]);
    for (const { executionId } of shared) {
      assert.equal(Number(one.moved.has(executionId)) + Number(two.moved.has(executionId)), 1);
      assert.equal((await eventIds(executionId)).length, 2);
    }
  }
});

test("a flush reads no table as a whole, however small the tables were when its plan was made", async () => {
  const flushDatabase = openFlushDatabase();
  const one = openStore("server-3", flushDatabase);
  const scans = async () => {
    await flushDatabase.sql`select pg_stat_force_next_flush()`;
    return [
      ...(await flushDatabase.sql`
        select relname, seq_scan from pg_stat_user_tables
        where relname in ('execution', 'command', 'batch', 'execution_snapshot', 'past_snapshot') order by relname`),
    ];
  };
  const change = rows.begin();
  const command = rows.issue(change);
  await one.flush({ executions: [{ ...change, issued: [command] }], batches: [] });
  const before = await scans();
  const commands = [{ commandId: command.commandId, ...CLAIMED }];
  const batch = accepted([change.executionId]);
  const next = rows.follow(change, { commands, snapshot: { eventId: change.lastEventId, format: 1, state: "{}" } });
  await one.flush({ executions: [next], batches: [batch] });
  const { accept: _, ...rest } = batch;
  const ended = [command.commandId];
  await one.flush({ executions: [rows.follow(next, { ended })], batches: [{ ...rest, state: "completed" }] });
  assert.deepEqual(await scans(), before);
});

test("who waits for another server's flush compares with what that one wrote", async () => {
  const change = await begun();
  let flush: ReturnType<typeof write> | undefined;
  await database.sql.begin(async (sql) => {
    await sql`update flow.execution set last_event_id = last_event_id + 1 where execution_id = ${change.executionId}`;
    flush = write(rows.follow(change));
    // Not before it waits for this transaction.
    for (let waiting = 0; waiting === 0; ) {
      const sessions = await sql`
        select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
      waiting = sessions.length;
    }
  });
  assert.equal((await flush)?.moved.size, 0);
});

test("a row that the database refuses takes the whole flush back", async () => {
  const [sound, broken] = [await begun(), await begun()];
  const command = { ...rows.issue(broken), commandId: "1" };
  await assert.rejects(write(rows.follow(sound), rows.follow(broken, { issued: [command] })), {
    constraint_name: "command_after_execution",
  });
  assert.deepEqual(await eventIds(sound.executionId), [sound.lastEventId]);
});

test("a used idempotency key of a start refuses the flush, and names the constraint", async () => {
  const idempotency = { caller: "c", key: "start", bodySha256: SHA256 };
  const first = rows.begin({ idempotency });
  await write(first);
  const again = write(rows.begin({ idempotency }));
  await assert.rejects(again, (error) => violatedConstraint(error) === "execution_for_idempotency");
  await assert.rejects(again, (error) => unavailable(error) === undefined);
  const known = { executionId: first.executionId, bodySha256: SHA256, status: "RUNNING" };
  assert.deepEqual(await store.findStart("c", "start"), known);
  assert.equal(await store.findStart("another", "start"), undefined);
});

test("an execution that ended stays as it ended; late events only move its place in the log", async () => {
  const change = await begun();
  const end = rows.follow(change, { status: "COMPLETED", progress: 100, result: { z: 1, a: null } });
  await write(end);
  const read = () => database.sql`
    select status, progress, result::text, ended_at from flow.execution where execution_id = ${change.executionId}`;
  const [before] = await read();
  assert.deepEqual(
    [before?.["status"], before?.["progress"], before?.["result"]],
    ["COMPLETED", 100, '{"z":1,"a":null}'],
  );
  const late = rows.follow(end, { status: "RUNNING", progress: 10 });
  await write(late);
  assert.deepEqual((await read())[0], before);
  assert.equal((await store.find(change.executionId))?.lastEventId, late.lastEventId);
});

test("an execution may end with JSON null, which is a result", async () => {
  const change = await begun();
  await write(rows.follow(change, { status: "COMPLETED", progress: 100, result: null }));
  const [row] = await database.sql`select result::text from flow.execution where execution_id = ${change.executionId}`;
  assert.equal(row?.["result"], "null");
});

test("a command goes from waiting to claimed, running and done", async () => {
  const change = rows.begin();
  const command = rows.issue(change);
  const { commandId } = command;
  await write({ ...change, issued: [command] });
  const { at, ...claimed } = await claim(change, commandId);
  const lease = new Date(at + 120_000);
  const held = { attempt: 1, worker: "w1", claimed_at: new Date(at), lease_expires_at: lease, ended_at: null };
  assert.deepEqual({ ...(await commandRow(commandId)) }, { status: "CLAIMED", ...held });
  // A start is no claim: it keeps the claim's time and lease.
  const started = rows.follow(claimed.change, {
    commands: [{ commandId, status: "RUNNING", attempt: 1, worker: "w1", leaseMs: null }],
  });
  await write(started);
  assert.deepEqual({ ...(await commandRow(commandId)) }, { status: "RUNNING", ...held });
  const done = rows.follow(started, {
    commands: [{ commandId, status: "COMPLETED", attempt: 1, worker: null, leaseMs: null }],
  });
  const end = await write(done);
  const free = { worker: null, claimed_at: null, lease_expires_at: null };
  const ended = { status: "COMPLETED", attempt: 1, ...free, ended_at: new Date(end.at) };
  assert.deepEqual({ ...(await commandRow(commandId)) }, ended);
  // What ended stays ended.
  await write(rows.follow(done, { commands: [{ commandId, ...CLAIMED, attempt: 2 }] }));
  assert.deepEqual({ ...(await commandRow(commandId)) }, ended);
});

async function claim(change: ExecutionChange, commandId: string) {
  const next = rows.follow(change, { commands: [{ commandId, ...CLAIMED }] });
  const { at } = await write(next);
  return { at, change: next };
}

test("a command of another execution is not changed", async () => {
  const [mine, other] = [rows.begin(), rows.begin()];
  const command = rows.issue(other);
  await write(mine, { ...other, issued: [command] });
  await write(rows.follow(mine, { commands: [{ commandId: command.commandId, ...CLAIMED }] }));
  assert.equal((await commandRow(command.commandId))?.["status"], "PENDING");
});

test("a command is read back as it was issued: keys in order, U+0000 in texts", async () => {
  const change = rows.begin();
  const labels = { zone: "b", arch: 'a"\\{}' };
  const command = rows.issue(change, { kinds: ["noop", 'a"b,\\{}'], labels });
  await write({ ...change, issued: [command] });
  const [body] = await store.commandBodies([command.commandId, "999999999"]);
  assert.equal(JSON.stringify(body), JSON.stringify(command.body));
  const [ready] = await store.claimableCommands([command.commandId]);
  assert.deepEqual(ready?.kinds, command.kinds);
  assert.deepEqual(ready?.labels, labels);
});

test("a snapshot is replaced by a newer one only", async () => {
  const change = await begun();
  const next = rows.follow(change);
  await write({ ...next, snapshot: { eventId: next.lastEventId, format: 2, state: "[2]" } });
  await write(rows.follow(next, { snapshot: { eventId: change.lastEventId, format: 1, state: "[1]" } }));
  const found = await store.find(change.executionId);
  assert.deepEqual(found?.snapshot, { eventId: next.lastEventId, format: 2, state: "[2]" });
});

const accepted = (executionIds: string[], more: Partial<BatchChange> = {}): BatchChange => {
  const accept = { caller: "w1", idempotencyKey: null, bodySha256: SHA256, executionIds, eventIds: [7, 8] };
  return { requestId: String(rows.next()), accept, state: "accepted", commandsGenerated: 0, executionIds, ...more };
};

test("an execution past its deadline is overdue until it ends", async () => {
  const [late, young] = [rows.begin({ deadlineAt: 1_000 }), rows.begin({ deadlineAt: Date.now() + 3_600_000 })];
  await write(late, young);
  assert.deepEqual(await store.overdueExecutions(10), [late.executionId]);
  const error = { kind: "timeout", code: "TIMEOUT", message: "too late", retryable: false } as const;
  await write(rows.follow(late, { status: "FAILED", error }));
  assert.deepEqual(await store.overdueExecutions(10), []);
});

test("ids are reserved in blocks, ahead of all before", async () => {
  const first = await store.reserveIds(100);
  assert.ok((await store.reserveIds(100)) >= first + 100);
});
