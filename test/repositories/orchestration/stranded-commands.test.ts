import assert from "node:assert/strict";
import { before, test } from "node:test";
import { firstIdAt } from "../../../src/platform/system/ids.ts";
import type { Database } from "../../../src/repositories/database/database.ts";
import {
  FIRST_HELD,
  findLost,
  findReturned,
  findStranded,
} from "../../../src/repositories/orchestration/stranded-commands.ts";
import { POLICY, type StoreSetup, storeSetup } from "../../support/database/store-setup.ts";
import { openServiceDatabase } from "../service-database.ts";

// Interface specification, "Commands": the reaper's rules. It changes nothing; it only says what is to be told again.

let database: Database;
let setup: StoreSetup;
before(async () => {
  database = await openServiceDatabase();
  setup = storeSetup(database);
  await setup.worker("healthy");
  await setup.worker("draining", { status: "draining" });
  await setup.worker("stale", { silentSeconds: 61 });
});

const stranded = (after = "0", limit = 100) => findStranded(database, { ...POLICY, pendingMs: 60_000 }, after, limit);

async function reasonOf(commandId: string): Promise<string | undefined> {
  const rows = await stranded(String(Number(commandId) - 1));
  return rows.find((row) => row.commandId === commandId)?.reason;
}

async function pending(ageSeconds: number): Promise<string> {
  const { commandId } = await setup.command();
  await database.sql`
    update flow.command set created_at = now() - ${ageSeconds}::float8 * interval '1 second'
    where command_id = ${commandId}`;
  return commandId;
}

test("a command that waits for as long as the retry age is published again, a younger one is not", async () => {
  assert.equal(await reasonOf(await pending(61)), "pending");
  assert.equal(await reasonOf(await pending(50)), undefined);
});

const HELD: [worker: string, claimedSeconds: number, reason: string | undefined][] = [
  ["missing", -60, "worker"],
  ["draining", -60, "worker"],
  ["stale", -60, "worker"],
  ["healthy", -60, undefined],
  ["healthy", -1_801, "timeout"],
];
for (const [worker, claimedSeconds, reason] of HELD) {
  test(`a command held for ${-claimedSeconds} s by a ${worker} worker: ${reason ?? "left alone"}`, async () => {
    assert.equal(await reasonOf(await setup.held(worker, { claimedSeconds })), reason);
  });
}

test("commands of an execution that has ended are not looked at", async () => {
  for (const commandId of [await pending(61), await setup.held("missing")]) {
    assert.notEqual(await reasonOf(commandId), undefined);
    await database.sql`
      update flow.execution set status = 'CANCELLED', ended_at = now()
      where execution_id = (select execution_id from flow.command where command_id = ${commandId})`;
    assert.equal(await reasonOf(commandId), undefined);
  }
});

test("a sweep is bounded, takes the oldest first, and the next one goes on after it", async () => {
  const first = await pending(100);
  const after = String(Number(first) - 1);
  const second = await setup.held("missing");
  const third = await pending(100);
  const sweep = await stranded(after, 2);
  assert.deepEqual(
    sweep.map(({ commandId }) => commandId),
    [first, second],
  );
  assert.deepEqual(
    (await stranded(second, 2)).map(({ commandId }) => commandId),
    [third],
  );
});

// Ids follow the clock, and of a healthy worker only commands that were issued long ago are read.
const ISSUED: [issuedSeconds: number, claimedSeconds: number, reason: string | undefined][] = [
  [2_400, -2_399, "timeout"],
  [2_400, -1_801, "timeout"],
  [2_400, -1_790, undefined],
  [1_801, -1_801, "timeout"],
  // Its server's clock is half a minute ahead of the database's.
  [1_771, -1_801, "timeout"],
  [1_600, -1_599, undefined],
];
for (const [issuedSeconds, claimedSeconds, reason] of ISSUED) {
  const what = `issued ${issuedSeconds} s ago and held for ${-claimedSeconds} s by a healthy worker`;
  test(`a command ${what}: ${reason ?? "left alone"}`, async () => {
    const issued = storeSetup(database, firstIdAt(Date.now() - issuedSeconds * 1_000));
    assert.equal(await reasonOf(await issued.held("healthy", { claimedSeconds })), reason);
    const lost = await issued.held("healthy", { claimedSeconds, leaseSeconds: -1 });
    const found = await findLost(database, POLICY, FIRST_HELD, 1_000);
    assert.equal(found.find(({ commandId }) => commandId === lost)?.reason, reason);
  });
}

const LOST: [worker: string, claimedSeconds: number, leaseSeconds: number, reason: string | undefined][] = [
  ["missing", -60, -1, "worker"],
  ["draining", -60, -1, "worker"],
  ["stale", -60, -1, "worker"],
  ["stale", -60, 60, undefined],
  ["healthy", -60, -1, undefined],
  ["healthy", -1_801, -1, "timeout"],
  ["healthy", -1_801, 60, undefined],
];
for (const [worker, claimedSeconds, leaseSeconds, reason] of LOST) {
  const what = `held for ${-claimedSeconds} s by a ${worker} worker, ${leaseSeconds} s before its lease ends`;
  test(`a command ${what}: ${reason === undefined ? "not lost" : `lost (${reason})`}`, async () => {
    const commandId = await setup.held(worker, { claimedSeconds, leaseSeconds });
    const lost = await findLost(database, POLICY, FIRST_HELD, 1_000);
    assert.equal(lost.find((row) => row.commandId === commandId)?.reason, reason);
    // Each is reported by one of the two.
    const isStranded = (await reasonOf(commandId)) !== undefined;
    assert.equal(isStranded, reason === undefined && (worker === "stale" || claimedSeconds < -1_800));
  });
}

test("commands lost by workers are walked by worker and age, without those of ended executions", async () => {
  const ids: string[] = [];
  for (const worker of ["walk-b", "walk-a", "walk-b", "walk-c"])
    ids.push(await setup.held(worker, { leaseSeconds: -1 }));
  const [b1, a1, b2, c1] = ids as [string, string, string, string];
  await database.sql`
    update flow.execution set status = 'CANCELLED', ended_at = now()
    where execution_id = (select execution_id from flow.command where command_id = ${c1})`;
  const from = { worker: "walk-", commandId: "0" };
  const walked: string[] = [];
  for (let place = from; ; ) {
    const page = await findLost(database, POLICY, place, 2);
    walked.push(...page.map(({ commandId }) => commandId));
    const last = page.at(-1);
    if (last === undefined || page.length < 2) break;
    place = last;
  }
  assert.deepEqual(walked, [a1, b1, b2]);
});

test("commands of a worker that signed off or is gone are released, and no others", async () => {
  await setup.worker("signed-off", { status: "offline" });
  const returned = async (worker: string, leaseSeconds: number) => {
    const commandId = await setup.held(worker, { leaseSeconds });
    const found = (await findReturned(database, 1_000)).find((row) => row.commandId === commandId);
    return found && [found.kinds, found.labels, found.attempt, found.lostBy];
  };
  assert.deepEqual(await returned("signed-off", -1), [["noop", "http"], null, 1, null]);
  assert.deepEqual(await returned("missing", -1), [["noop", "http"], null, 1, "missing"]);
  for (const worker of ["healthy", "stale", "draining"]) assert.equal(await returned(worker, -1), undefined);
  assert.equal(await returned("signed-off", 60), undefined);
  assert.equal((await findReturned(database, 1)).length, 1);
});

test("a sweep reads held commands over their own index, however many commands have ended", async () => {
  const { sql } = database;
  await sql`
    insert into flow.command (command_id, execution_id, catalog_id, step, kinds, status, attempt, body, ended_at)
    select -n, -n - 1, 1, 's', '{noop}', 'COMPLETED', 1, '{}', now() from generate_series(1, 20000) as n`;
  await sql`analyze flow.command`;
  /** Explains the statement itself; its parts stay as they are. */
  const explaining = ((strings: TemplateStringsArray, ...values: never[]) => {
    if (!/^\s*with /.test(strings[0] ?? "")) return sql(strings, ...values);
    const texts = [`explain ${strings[0]}`, ...strings.slice(1)];
    return sql(Object.assign(texts, { raw: texts }), ...values);
  }) as unknown as Database["sql"];
  const plans = [
    await findStranded({ ...database, sql: explaining }, { ...POLICY, pendingMs: 60_000 }, "0", 100),
    await findLost({ ...database, sql: explaining }, POLICY, FIRST_HELD, 100),
  ];
  for (const plan of plans) {
    const lines = (plan as unknown as Record<"QUERY PLAN", string>[]).map((row) => row["QUERY PLAN"]);
    const scans = lines.filter((line) => /\bon command\b|\bcommand_\w+/.test(line));
    assert.ok(
      scans.some((line) => line.includes("command_for_reaper")),
      lines.join("\n"),
    );
    for (const scan of scans) assert.doesNotMatch(scan, /Seq Scan|command_pkey/, lines.join("\n"));
  }
});
