import assert from "node:assert/strict";
import { before, test } from "node:test";
import { createNatsKeyValue } from "../../../src/adapters/nats/key-value.ts";
import { createKvPayloads } from "../../../src/adapters/payloads/kv.ts";
import { openLink } from "../../adapters/nats-pair.ts";
import { storedResults } from "../../support/database/stored-results.ts";
import { recordLog } from "../../support/engine/recorded-log.ts";
import { startTestNats } from "../../support/servers/nats-server.ts";
import { openApi } from "../../support/service/api.ts";
import { ONE_STEP } from "../../support/service/api-work.ts";

/* Small results where there is a broker: its key-value store has them, and work does not wait for it. */

// Less than the largest value, as an installation may have set it up.
const nats = await startTestNats({ maxPayload: 200_000 });
const log = recordLog();
const link = openLink(nats.url, log);
await log.until(({ message }) => message.includes("connected to the broker"));
const store = createKvPayloads(createNatsKeyValue({ link, now: Date.now, maxAgeMs: 0 }));
const api = await openApi({}, { stores: [store] });
const { work, claimed, refOf, put, get, rowsOf } = storedResults(api);
before(() => work.register("one", ONE_STEP));

const text = (letter: string, bytes = 100_000) => JSON.stringify(letter.repeat(bytes));

test("a small result goes to the broker, and goes from there with its execution", { timeout: 30_000 }, async () => {
  const command = await claimed("one");
  const { status, body } = await put(command, text("a"));
  assert.deepEqual([status, body["store"]], [200, "kv"]);
  const meta = body["meta"] as { bucket: string; key: string };
  assert.equal(meta.bucket, "flow-results");
  assert.equal(await (await get(refOf(command))).text(), text("a"));
  assert.notEqual(await store.read(meta), undefined);
  const [row] = await api.database.sql`select payload from flow.result where execution_id = ${command.execution_id}`;
  assert.equal(row?.["payload"], null, "it is written once");
  await api.service.results.removeOf([command.execution_id], 10);
  assert.equal(await store.read(meta), undefined);
});

test("what the broker cannot take, and what comes while it is away, is in the row", { timeout: 60_000 }, async () => {
  const command = await claimed("one");
  const [large, away] = [refOf(command, "large"), refOf(command, "away")];
  const whole = text("w", 300_000);
  const put1 = await put(command, whole, { ref: large, compression: "none" });
  assert.deepEqual(
    [put1.status, put1.body["store"], put1.body["meta"]],
    [200, "kv", { bucket: "flow.result", key: large }],
  );
  const inBroker = refOf(command, "before");
  await put(command, text("b"), { ref: inBroker });
  await nats.stop();
  await log.until(({ message }) => message.includes("broker is gone"));
  const put2 = await put(command, text("c"), { ref: away });
  assert.deepEqual(
    [put2.status, put2.body["store"], put2.body["meta"]],
    [200, "kv", { bucket: "flow.result", key: away }],
  );
  assert.equal(await (await get(large)).text(), whole);
  assert.equal(await (await get(away)).text(), text("c"));
  const read = await get(inBroker);
  assert.deepEqual([read.status, ((await read.json()) as { code: string }).code], [503, "UNAVAILABLE"]);
  // What is replaced while the broker is away stays on record there.
  await put(command, text("d"), { ref: inBroker });
  assert.equal(await (await get(inBroker)).text(), text("d"));
  assert.equal((await rowsOf(command.execution_id)).filter(({ state }) => state === "deleting").length >= 1, true);
  await nats.start();
  await log.until(() => log.matching("connected to the broker").length >= 2);
  await api.database.sql`update flow.result set created_at = now() - interval '1 hour' where state <> 'stored'`;
  await api.service.results.removeLeftovers(10);
  assert.deepEqual(new Set((await rowsOf(command.execution_id)).map(({ state }) => state)), new Set(["stored"]));
});

test("an emptied broker is a result that is not available", { timeout: 30_000 }, async () => {
  const command = await claimed("one");
  await put(command, text("a"));
  await nats.stop();
  await nats.wipe();
  await nats.start();
  await log.until(() => log.matching("connected to the broker").length >= 3);
  const answer = await get(refOf(command));
  assert.deepEqual([answer.status, ((await answer.json()) as { code: string }).code], [404, "REFERENCE_NOT_AVAILABLE"]);
});
