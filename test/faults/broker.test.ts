import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "nats";
import { startTestNats } from "../support/servers/nats-server.ts";
import { WORK_DONE } from "./support/playbooks.ts";
import { LONG, openStand, ownedByFile } from "./support/stand.ts";
import { until } from "./support/until.ts";

/* What happens to the broker (the fault matrix in the design): gone, back, emptied, and telling lies. */

const nats = await startTestNats();

/** Everything that the tests use: it starts without NATS, and outlives what happens to it. */
const stand = await openStand(ownedByFile(), { ...LONG, BROKER_URL: nats.url });
await nats.stop();
const servers = await Promise.all([stand.server(), stand.server()]);
const [one, two] = servers;
const workers = await Promise.all([stand.worker(one, "one"), stand.worker(two, "two")]);
const client = await stand.client(one);

test("servers start without NATS, and use it as soon as it is available", async () => {
  await stand.finish(client, await stand.start(client, "work", 2), WORK_DONE);
  await nats.start();
  for (const server of servers) await server.untilLog("notices go to and come from other servers");
});

test("NATS is killed, started again and emptied under load: two servers continue by polling, and use it again when it is back", async () => {
  const ids = await stand.start(client, "work", 6);
  await nats.stop();
  ids.push(...(await stand.start(client, "work", 6)));
  await nats.start();
  ids.push(...(await stand.start(client, "work", 6)));
  await nats.stop();
  await nats.wipe();
  ids.push(...(await stand.start(client, "work", 6)));
  await nats.start();
  await stand.finish(client, ids, { ...WORK_DONE, once: true });
  for (const server of servers) {
    const said = () => server.log().split("notices go to and come from other servers").length - 1;
    await until("the server uses the broker again", () => said() >= 2);
  }
  assert.deepEqual(
    [...servers, ...workers].map((process) => process.isRunning()),
    [true, true, true, true],
  );
});

test("forged, duplicate, stale or invalid notices: no command is claimed twice", async (t) => {
  const before = await stand.start(client, "work", 1);
  await stand.finish(client, before, WORK_DONE);
  const held = stand.effects.hold("fan");
  const ids = await stand.start(client, "work", 4);
  await held.arrived(4);
  const forger = await connect({ servers: nats.url });
  t.after(() => forger.close());
  const rows = await stand.database.sql<{ id: string }[]>`select command_id as id from flow.command`;
  const commandIds = [...rows.map(({ id }) => id), "1", "9007199254740991"];
  const [known = ""] = ids;
  const notices: object[] = [
    { kind: "commands", commandIds },
    { kind: "commands", commandIds: [...commandIds].reverse() },
    { kind: "execution", executionId: known, lastEventId: "9007199254740991" },
    { kind: "execution", executionId: "42", lastEventId: "1" },
    { kind: "cancel", executionId: known },
  ];
  for (const subject of ["flow.commands.issued", "flow.executions.changed"]) {
    for (let times = 0; times < 20; times += 1) forger.publish(subject, JSON.stringify({ from: "forger", notices }));
    for (const text of [
      "",
      "no JSON",
      "[]",
      '{"from": 1}',
      '{"from":"x","notices":[{"kind":"commands","commandIds":["-1"]}]}',
    ]) {
      forger.publish(subject, text);
    }
    forger.publish(subject, new Uint8Array(200_000));
  }
  await forger.flush();
  held.release();
  await stand.finish(client, ids, { ...WORK_DONE, once: true });
});
