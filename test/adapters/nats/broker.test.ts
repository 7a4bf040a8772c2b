import assert from "node:assert/strict";
import { before, test } from "node:test";
import { connect, type NatsConnection } from "nats";
import { COMMANDS_STREAM } from "../../../src/adapters/nats/command-log.ts";
import { COMMANDS_SUBJECT, EXECUTIONS_SUBJECT } from "../../../src/adapters/nats/message.ts";
import { startTestNats, type TestNats } from "../../support/servers/nats-server.ts";
import { startTcpProxy } from "../../support/servers/tcp-proxy.ts";
import { isSign, listen, sign } from "../broker-contract.ts";
import { connected, type NatsEnd, openEnd } from "../nats-pair.ts";

const LIMIT = { timeout: 300_000 };

let shared: TestNats;
before(async () => {
  shared = await startTestNats();
});

/** NATS as another program sees it. */
async function asStranger(nats: TestNats, work: (connection: NatsConnection) => Promise<void>): Promise<void> {
  const connection = await connect({ servers: `127.0.0.1:${nats.port}` });
  try {
    await work(connection);
    await connection.flush();
  } finally {
    await connection.close();
  }
}

/** Resolves when this end has made the stream so many times. */
async function streamMade(end: NatsEnd, count: number): Promise<void> {
  await end.log.until(() => end.log.matching("made the stream").length >= count);
}

test("how long an answer takes is known while there is a connection, and only then", LIMIT, async () => {
  const there = openEnd(shared.url);
  await connected(there);
  const ms = await there.link.latencyMs();
  assert.ok(ms !== undefined && ms >= 0, String(ms));
  await there.link.close();
  assert.equal(await there.link.latencyMs(), undefined);
});

test("without NATS at the start the process hears itself, and the others once NATS is there", LIMIT, async () => {
  const nats = await startTestNats({ started: false });
  const [here, there] = [openEnd(nats.url), openEnd(nats.url)];
  const [own, others] = [listen(here.broker), listen(there.broker)];
  await here.log.until(({ level, message }) => level === "warn" && message.includes("cannot be reached"));
  assert.equal(here.broker.connected(), false);
  here.broker.publish(sign("1"));
  await own.until(isSign("1"));
  await nats.start();
  await Promise.all([connected(here), connected(there)]);
  assert.equal(here.broker.connected(), true);
  here.broker.publish(sign("2"));
  await others.until(isSign("2"));
  assert.equal(here.log.matching("cannot be reached:").length, 1, "told once, however many attempts it took");
});

test("notices published while NATS is unavailable are delivered when it is back", LIMIT, async () => {
  const nats = await startTestNats();
  const [here, there] = [openEnd(nats.url), openEnd(nats.url)];
  await Promise.all([connected(here), connected(there)]);
  const listener = listen(there.broker);
  await nats.stop();
  await Promise.all([here, there].map(({ log }) => log.until(({ message }) => message.includes("broker is gone"))));
  here.broker.publish({ kind: "commands", commandIds: ["41", "42"] });
  here.broker.publish({ kind: "commands", commandIds: ["42", "43"] });
  here.broker.publish({ kind: "execution", executionId: "7", lastEventId: "9" });
  here.broker.publish({ kind: "execution", executionId: "7", lastEventId: "10" });
  await nats.start();
  await connected(there, 2);
  here.broker.publish(sign("1"));
  await listener.until(isSign("1"));
  // Either may be back first. The stream keeps the notices for the other one, which may receive them twice: live, and from the stream.
  await listener.until(({ kind }) => kind === "commands");
  for (const notice of listener.notices)
    if (notice.kind === "commands") assert.deepEqual(notice.commandIds, ["41", "42", "43"], "doubled ids travel once");
  const executions = listener.notices.filter(({ kind }) => kind === "execution");
  assert.ok(
    executions.every((notice) => notice.kind === "execution" && notice.lastEventId === "10"),
    "the newest alone",
  );
});

test("a NATS that lost everything is filled again, and notices go on", LIMIT, async () => {
  const nats = await startTestNats();
  const [here, there] = [openEnd(nats.url), openEnd(nats.url)];
  await Promise.all([connected(here), connected(there)]);
  await nats.stop();
  await nats.wipe();
  await nats.start();
  await Promise.all([connected(here, 2), connected(there, 2)]);
  const listener = listen(there.broker);
  here.broker.publish({ kind: "commands", commandIds: ["1"] });
  await listener.until(({ kind }) => kind === "commands");
});

test(
  "a stream that is deleted under a live connection is made again, and live notices go on meanwhile",
  LIMIT,
  async () => {
    const nats = await startTestNats();
    const end = openEnd(nats.url);
    await connected(end);
    await streamMade(end, 1);
    const listener = listen(end.broker);
    await asStranger(nats, async (connection) => {
      const { streams } = await connection.jetstreamManager();
      await streams.delete(COMMANDS_STREAM);
      connection.publish(
        COMMANDS_SUBJECT,
        JSON.stringify({ from: "x", notices: [{ kind: "commands", commandIds: ["1"] }] }),
      );
    });
    await listener.until(({ kind }) => kind === "commands");
    await streamMade(end, 2);
  },
);

test("a server that was cut off reads the commands that it missed", LIMIT, async () => {
  const nats = await startTestNats();
  const proxy = await startTcpProxy(nats.port);
  const here = openEnd(nats.url);
  const there = openEnd(`nats://127.0.0.1:${proxy.port}`);
  await Promise.all([connected(here), connected(there)]);
  const listener = listen(there.broker);
  here.broker.publish({ kind: "commands", commandIds: ["1"] });
  await listener.until(({ kind }) => kind === "commands");
  proxy.cut();
  await there.log.until(({ message }) => message.includes("broker is gone"));
  // Each in a message of its own: the next is published when NATS has the one before.
  await asStranger(nats, async (stranger) => {
    for (const id of ["2", "3", "4"]) {
      here.broker.publish({ kind: "commands", commandIds: [id] });
      await stranger.flush();
    }
  });
  assert.deepEqual(listener.commandIds(), ["1"]);
  proxy.mend();
  await listener.until((notice) => notice.kind === "commands" && notice.commandIds.includes("4"));
  assert.deepEqual([...new Set(listener.commandIds())].sort(), ["1", "2", "3", "4"]);
});

test("a stream that was created during a disconnection is read from its beginning", LIMIT, async () => {
  const nats = await startTestNats();
  const proxy = await startTcpProxy(nats.port);
  const there = openEnd(`nats://127.0.0.1:${proxy.port}`);
  await connected(there);
  const listener = listen(there.broker);
  // The old stream counts further than the new one ever will.
  for (let id = 1; id <= 20; id += 1) await tellCommand(nats, String(id));
  await listener.until((notice) => notice.kind === "commands" && notice.commandIds.includes("20"));
  proxy.cut();
  await there.log.until(({ message }) => message.includes("broker is gone"));
  await asStranger(nats, async (stranger) => {
    const { streams } = await stranger.jetstreamManager();
    const { config } = await streams.info(COMMANDS_STREAM);
    await streams.delete(COMMANDS_STREAM);
    await streams.add(config);
  });
  await tellCommand(nats, "21");
  proxy.mend();
  await listener.until((notice) => notice.kind === "commands" && notice.commandIds.includes("21"));
});

async function tellCommand(nats: TestNats, id: string): Promise<void> {
  const text = JSON.stringify({ from: "another server", notices: [{ kind: "commands", commandIds: [id] }] });
  await asStranger(nats, (connection) => Promise.resolve(connection.publish(COMMANDS_SUBJECT, text)));
}

test("a stream of the same name with other subjects is left alone, logged once, and not needed", LIMIT, async () => {
  const nats = await startTestNats();
  await asStranger(nats, async (connection) => {
    const { streams } = await connection.jetstreamManager();
    await streams.add({ name: COMMANDS_STREAM, subjects: ["something.else"] });
  });
  const [here, there] = [openEnd(nats.url), openEnd(nats.url)];
  await Promise.all([connected(here), connected(there)]);
  const listener = listen(there.broker);
  here.broker.publish({ kind: "commands", commandIds: ["1"] });
  await listener.until(({ kind }) => kind === "commands");
  await there.log.until(({ level, message }) => level === "debug" && message.includes("no JetStream stream"));
  const told = there.log.matching("no JetStream stream").filter(({ level }) => level === "warn");
  assert.equal(told.length, 1);
  assert.match(String(told[0]?.fields["reason"]), /does not take flow\.commands\.issued/);
});

test("without JetStream it is said once that nothing is kept", LIMIT, async () => {
  const nats = await startTestNats({ jetStream: false });
  const end = openEnd(nats.url);
  await end.log.until(({ level, message }) => level === "debug" && message.includes("no JetStream stream"));
  assert.equal(end.log.matching("no JetStream stream").filter(({ level }) => level === "warn").length, 1);
});

const NOTICE = { kind: "commands", commandIds: ["1"] };
for (const [what, data] of [
  ["no JSON", "hello"],
  ["no UTF-8", Uint8Array.of(0xff, 0xfe)],
  ["nothing", ""],
  ["a deep list", "[".repeat(60_000)],
  ["more bytes than a message of ours can have", JSON.stringify({ from: "x", notices: [], more: "x".repeat(70_000) })],
  ["an unknown kind", JSON.stringify({ from: "x", notices: [{ kind: "shutdown" }] })],
  ["an id that is a number", JSON.stringify({ from: "x", notices: [{ kind: "commands", commandIds: [1] }] })],
  ["an id that is SQL", JSON.stringify({ from: "x", notices: [{ kind: "commands", commandIds: ["1; drop"] }] })],
  ["an id beyond 2^53", JSON.stringify({ from: "x", notices: [{ kind: "cancel", executionId: "99999999999999999" }] })],
  ["one bad notice among good ones", JSON.stringify({ from: "x", notices: [NOTICE, { kind: "cancel" }] })],
  ["more notices than are sent at once", JSON.stringify({ from: "x", notices: Array(300).fill(NOTICE) })],
] as const) {
  test(`a forged message is ignored: ${what}`, LIMIT, async () => {
    const end = openEnd(shared.url);
    await connected(end);
    const listener = listen(end.broker);
    await asStranger(shared, async (connection) => {
      for (const subject of [COMMANDS_SUBJECT, EXECUTIONS_SUBJECT]) connection.publish(subject, data);
      connection.publish(EXECUTIONS_SUBJECT, JSON.stringify({ from: "x", notices: [sign("1")] }));
    });
    await listener.until(isSign("1"));
    assert.deepEqual(listener.notices, [sign("1")]);
    const ignored = end.log.matching("a message was ignored");
    assert.deepEqual(
      ignored.map(({ level }) => level),
      ["debug", "debug"],
    );
    await end.link.close();
  });
}

test("a refused password is logged once as an error, without the address, and the service goes on", LIMIT, async () => {
  const nats = await startTestNats({ user: "flow", password: "right" });
  const end = openEnd(nats.url.replace("right", "canary"));
  const listener = listen(end.broker);
  await end.log.until(({ level, message }) => level === "debug" && message.includes("cannot be reached yet"));
  end.broker.publish(sign("1"));
  await listener.until(isSign("1"));
  const errors = end.log.lines.filter(({ level }) => level === "error");
  assert.equal(errors.length, 1);
  assert.match(errors[0]?.message ?? "", /refuses the user or password of BROKER_URL/);
  assert.doesNotMatch(JSON.stringify(end.log.lines), /canary/);
});

test("the right password, with characters that an address must escape, is accepted", LIMIT, async () => {
  const nats = await startTestNats({ user: "flow", password: "p@ss:w/rd%" });
  const end = openEnd(`nats://flow:${encodeURIComponent("p@ss:w/rd%")}@127.0.0.1:${nats.port}`);
  await connected(end);
});

test(
  "a NATS that stops reading costs no memory: the oldest notices are dropped, the newest arrive",
  LIMIT,
  async () => {
    const nats = await startTestNats();
    const [here, there] = [openEnd(nats.url), openEnd(nats.url)];
    await Promise.all([connected(here), connected(there)]);
    const listener = listen(there.broker);
    nats.freeze();
    for (let id = 1; id <= 30_000; id += 1) here.broker.publish(sign(String(id)));
    nats.thaw();
    await listener.until(isSign("30000"));
    assert.equal(here.log.matching("notices for other servers are dropped").length, 1);
    assert.ok(listener.notices.length < 30_000);
  },
);

test("closing sends what waits first", LIMIT, async () => {
  const [here, there] = [openEnd(shared.url), openEnd(shared.url)];
  await Promise.all([connected(here), connected(there)]);
  const listener = listen(there.broker);
  here.broker.publish(sign("1"));
  await here.broker.close();
  await here.link.close();
  await listener.until(isSign("1"));
});

test("message after message leaves nothing behind that waits for the connection to end", LIMIT, async () => {
  const warnings: Error[] = [];
  const note = (warning: Error) => warnings.push(warning);
  process.on("warning", note);
  const [here, there] = [openEnd(shared.url), openEnd(shared.url)];
  await Promise.all([connected(here), connected(there)]);
  const listener = listen(there.broker);
  for (let id = 1; id <= 100; id += 1) {
    here.broker.publish(sign(String(id)));
    await listener.until(isSign(String(id)));
  }
  process.off("warning", note);
  assert.deepEqual(warnings, []);
});
