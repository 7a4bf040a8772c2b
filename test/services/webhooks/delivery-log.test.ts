import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { Database } from "../../../src/repositories/database/database.ts";
import { deleteOldDeliveries } from "../../../src/repositories/triggers/deliveries.ts";
import {
  createDeliveryLog,
  type DeliveryLog,
  KEPT,
  type NotedDelivery,
  ROWS_PER_MINUTE,
} from "../../../src/services/webhooks/delivery-log.ts";
import { openServiceDatabase } from "../../repositories/service-database.ts";

/* What is written of deliveries, on PostgreSQL: people see the last ones, and no sender decides how many rows there are. */

let database: Database;
let clock = Date.UTC(2026, 0, 1, 12);
before(async () => {
  database = await openServiceDatabase();
  await database.sql`
    insert into flow.trigger (trigger_id, document, path, name, kind, definition, version)
    select n, 'p' || n, 'p' || n, 't', 'webhook', '{}', 1 from generate_series(1, 20) as n`;
});

/** A log, and its server's writing of all that was noted. */
function open(lost: unknown[] = []): { log: DeliveryLog; written(): Promise<void> } {
  const log = createDeliveryLog({ database, now: () => clock, onLost: (error) => lost.push(error) });
  return { log, written: () => log.close() };
}
const refused = (triggerId: string, more: Partial<NotedDelivery> = {}): NotedDelivery => ({
  ...{ triggerId, verdict: "not_verified", reason: "the header x is missing", address: "10.0.0.1", bytes: 2 },
  ...more,
});
async function rows(triggerId: string, isRefused?: boolean) {
  const { items } = await open().log.list(triggerId, { limit: 500, ...(isRefused !== undefined && { isRefused }) });
  return items;
}

test("each delivery has its row with what came of it, newest first, those that were taken and refused ones apart", async () => {
  const { log, written } = open();
  log.note({ triggerId: "1", verdict: "started", address: "10.0.0.1", bytes: 17, executionId: "4711" });
  clock += 5;
  log.note({ triggerId: "1", verdict: "skipped", reason: "Its `when` does not hold" });
  log.note(refused("1"));
  await written();
  const shown = (await rows("1")).map(({ verdict, reason, address, bytes, executionId, count }) =>
    [verdict, reason, address, bytes, executionId, count].join(" "),
  );
  assert.deepEqual(shown, [
    "not_verified the header x is missing 10.0.0.1 2  1",
    "skipped Its `when` does not hold    1",
    "started  10.0.0.1 17 4711 1",
  ]);
  assert.deepEqual(
    (await rows("1", true)).map(({ verdict }) => verdict),
    ["not_verified"],
  );
  assert.equal((await rows("1", false)).length, 2);
});

test("the last delivery of a minute that has a row of its own, the next, and all that follow: they share one", async () => {
  const { log, written } = open();
  for (let index = 0; index < ROWS_PER_MINUTE; index += 1) log.note(refused("2"));
  await written();
  assert.equal((await rows("2")).length, ROWS_PER_MINUTE);
  log.note(refused("2", { bytes: 9 }));
  await written();
  assert.deepEqual((await rows("2")).slice(0, 1)[0]?.count, 1);
  clock += 10;
  for (let index = 0; index < 46; index += 1) log.note(refused("2", { bytes: index }));
  await written();
  const [rest] = await rows("2");
  assert.deepEqual(
    [(await rows("2")).length, rest?.count, rest?.bytes, rest?.address],
    [ROWS_PER_MINUTE + 1, 47, 45, "10.0.0.1"],
  );
  assert.equal((rest?.lastAt.getTime() ?? 0) - (rest?.firstAt.getTime() ?? 0), 10);
  log.note(refused("2", { address: "10.0.0.2" }));
  await written();
  assert.equal((await rows("2"))[0]?.address, null, "they did not all come from there");
  clock += 60_000;
  log.note(refused("2"));
  await written();
  assert.equal((await rows("2")).length, ROWS_PER_MINUTE + 2, "a new minute, a row of its own");
});

test("a flood from a thousand addresses over an hour on two servers leaves so many rows, and those that were taken", async () => {
  const servers = [open(), open()];
  servers[0]?.log.note({ triggerId: "3", verdict: "started", executionId: "1" });
  for (let minute = 0; minute < 60; minute += 1) {
    clock += 60_000;
    for (const { log, written } of servers) {
      for (let index = 0; index < 1_000; index += 1) log.note(refused("3", { address: `10.1.${index}` }));
      await written();
    }
    const [{ count }] = await database.sql<[{ count: number }]>`
      select count(*)::int from flow.trigger_delivery where trigger_id = 3`;
    assert.ok(count <= KEPT + 1, `${count} rows after ${minute} minutes`);
  }
  assert.equal((await rows("3", true)).length, KEPT);
  assert.deepEqual(
    (await rows("3", false)).map(({ executionId }) => executionId),
    ["1"],
  );
});

test("of a trigger that is gone nothing is written; text that PostgreSQL does not store is written without that", async () => {
  const { log, written } = open();
  log.note(refused("4711"));
  log.note(refused("4", { reason: `a\u0000b\ud800${"x".repeat(1_000)}` }));
  await written();
  assert.deepEqual(await rows("4711"), []);
  const reason = (await rows("4"))[0]?.reason ?? "";
  assert.ok(reason.startsWith("a\ufffdb\ufffdxxx") && reason.length === 300, reason);
});

test("while the database refuses, what was noted is lost, said, and nothing else: later ones are written", async () => {
  const lost: unknown[] = [];
  const { log, written } = open(lost);
  await database.sql`alter table flow.trigger_delivery rename to trigger_delivery_away`;
  log.note(refused("5"));
  await written();
  await database.sql`alter table flow.trigger_delivery_away rename to trigger_delivery`;
  assert.equal(lost.length, 1);
  log.note(refused("5"));
  await written();
  assert.equal((await rows("5")).length, 1);
});

test("old deliveries go as old fires do", async () => {
  await database.sql`
    insert into flow.trigger_delivery (delivery_id, trigger_id, verdict, is_refused, first_at, last_at)
    values (5, 6, 'started', false, now(), now())`;
  assert.equal(await deleteOldDeliveries(database, 30, 100), 1);
  assert.equal((await rows("3", true)).length, KEPT);
});
