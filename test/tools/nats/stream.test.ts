import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect, type JetStreamManager, type NatsConnection } from "nats";
import { createEgressGuard } from "../../../src/platform/http/egress.ts";
import { readStream, type StreamConsumer, type StreamMessage } from "../../../src/tools/nats/stream.ts";
import { readNatsTarget } from "../../../src/tools/nats/target.ts";
import { startTestNats, type TestNats } from "../../support/servers/nats-server.ts";

const LIMIT = { timeout: 60_000 };
const egress = createEgressGuard({ allowPrivate: "all" });

let nats: TestNats;
let own: NatsConnection;
let manager: JetStreamManager;
before(async () => {
  nats = await startTestNats();
  own = await connect({ servers: `127.0.0.1:${nats.port}` });
  manager = await own.jetstreamManager();
});
after(() => own.close());

let streams = 0;
/** A stream of its own, and what is to be read of it. */
async function stream(given: Partial<StreamConsumer> = {}): Promise<StreamConsumer> {
  streams += 1;
  const name = `S${streams}`;
  await manager.streams.add({ name, subjects: [`s${streams}.>`] });
  return {
    stream: name,
    durable: "flow",
    isOwn: true,
    description: "a test",
    deliver: "all",
    maxInFlight: 5,
    ackWaitMs: 30_000,
    ...given,
  };
}

const subject = (consumer: StreamConsumer, rest: string) => `${consumer.stream.toLowerCase()}.${rest}`;

/** A reader that notes what it takes; `until` resolves when that holds. */
function reading(
  consumer: StreamConsumer,
  take: (message: StreamMessage) => Promise<void> = async () => undefined,
  url = nats.url,
) {
  const taken: StreamMessage[] = [];
  const waiting: { holds(): boolean; resolve(): void }[] = [];
  const look = () => {
    for (const { resolve } of waiting.filter(({ holds }) => holds())) resolve();
  };
  const stopping = new AbortController();
  let ready: () => void = () => undefined;
  const isReady = new Promise<void>((resolve) => (ready = resolve));
  const ended = readStream(
    consumer,
    {
      target: readNatsTarget({ url }, {}),
      egress,
      onReady: ready,
      async take(message) {
        taken.push(message);
        look();
        await take(message);
      },
    },
    stopping.signal,
  );
  ended.catch(() => undefined);
  return {
    taken,
    isReady,
    ended,
    until: (holds: () => boolean) =>
      holds() ? Promise.resolve() : new Promise<void>((resolve) => waiting.push({ holds, resolve })),
    async stop() {
      stopping.abort();
      await ended;
    },
  };
}

const text = ({ data }: StreamMessage) => Buffer.from(data).toString();

test("messages from before and after are taken once each, in their order, and acknowledged", LIMIT, async () => {
  const consumer = await stream();
  const js = own.jetstream();
  await js.publish(subject(consumer, "a"), "1");
  const reader = reading(consumer);
  await reader.isReady;
  await js.publish(subject(consumer, "b"), "2");
  await reader.until(() => reader.taken.length === 2);
  await reader.stop();
  assert.deepEqual(
    reader.taken.map((one) => [text(one), one.sequence, one.subject, one.isRedelivered]),
    [
      ["1", 1, subject(consumer, "a"), false],
      ["2", 2, subject(consumer, "b"), false],
    ],
  );
  const { num_ack_pending: open, num_pending: left, config } = await manager.consumers.info(consumer.stream, "flow");
  assert.deepEqual([open, left, config.max_ack_pending], [0, 0, 5]);
  const next = reading(consumer);
  await next.isReady;
  await js.publish(subject(consumer, "c"), "3");
  await next.until(() => next.taken.length === 1);
  await next.stop();
  assert.deepEqual(next.taken.map(text), ["3"], "what was acknowledged does not come again");
});

test("a message that could not be taken comes again, as the same one", LIMIT, async () => {
  const consumer = await stream();
  const reader = reading(consumer, async (message) => {
    if (!message.isRedelivered) throw new Error("the database is away");
  });
  await own.jetstream().publish(subject(consumer, "a"), "1");
  await reader.until(() => reader.taken.length === 2);
  await reader.stop();
  const [first, second] = reader.taken;
  assert.deepEqual([first?.sequence, first?.timestampNanos], [second?.sequence, second?.timestampNanos]);
});

test("what was taken and not acknowledged when the reader died comes to the next one", LIMIT, async () => {
  const consumer = await stream({ ackWaitMs: 1_000 });
  let release: () => void = () => undefined;
  const held = new Promise<void>((resolve) => (release = resolve));
  const dead = reading(consumer, () => held);
  await own.jetstream().publish(subject(consumer, "a"), "1");
  await dead.until(() => dead.taken.length === 1);
  const heir = reading(consumer);
  await heir.until(() => heir.taken.length === 1);
  release();
  await Promise.all([dead.stop(), heir.stop()]);
  assert.equal(heir.taken[0]?.isRedelivered, true);
});

test("no more are under way than the trigger says, also of another's consumer", LIMIT, async () => {
  for (const isOwn of [true, false]) {
    const consumer = await stream({ maxInFlight: 3, isOwn });
    if (!isOwn) await manager.consumers.add(consumer.stream, { durable_name: "flow", ack_policy: "explicit" as never });
    const js = own.jetstream();
    for (let index = 0; index < 10; index += 1) await js.publish(subject(consumer, "a"), String(index));
    let [now, most] = [0, 0];
    const reader = reading(consumer, async () => {
      now += 1;
      most = Math.max(most, now);
      await new Promise((resolve) => setImmediate(resolve));
      now -= 1;
    });
    await reader.until(() => reader.taken.length === 10);
    await reader.stop();
    assert.ok(most <= 3 && most > 1, `${most} at a time`);
  }
});

test("a subject and headers are read; a consumer of new messages leaves out the old", LIMIT, async () => {
  const consumer = await stream({ deliver: "new" });
  const js = own.jetstream();
  const only = { ...consumer, subject: subject(consumer, "created") };
  await js.publish(only.subject, "old");
  const reader = reading(only);
  await reader.isReady;
  await js.publish(subject(consumer, "other"), "no");
  const { headers } = await import("nats");
  const named = headers();
  named.append("X-Trace", "a");
  named.append("X-Trace", "b");
  await js.publish(only.subject, "yes", { headers: named });
  await reader.until(() => reader.taken.length === 1);
  await reader.stop();
  assert.deepEqual(
    reader.taken.map((one) => [text(one), one.headers["x-trace"]]),
    [["yes", "b"]],
  );
});

test("a changed trigger changes its own consumer; a push consumer is refused", LIMIT, async () => {
  const consumer = await stream();
  await reading(consumer).stop();
  const wider = reading({ ...consumer, maxInFlight: 9 });
  await wider.isReady;
  await wider.stop();
  assert.equal((await manager.consumers.info(consumer.stream, "flow")).config.max_ack_pending, 9);
  const push = await stream();
  await manager.consumers.add(push.stream, {
    durable_name: "flow",
    ack_policy: "explicit" as never,
    deliver_subject: "x",
  });
  await assert.rejects(reading(push).ended, /cannot be read: it is a push consumer/);
});

test("without the stream, the server, or while it is away, reading ends with a sentence", LIMIT, async () => {
  const consumer = await stream();
  await assert.rejects(reading({ ...consumer, stream: "NONE" }).ended, {
    code: "UNAVAILABLE",
    message: /'NONE'.*cannot be read: stream not found/,
  });
  const away = await startTestNats({ started: false });
  await assert.rejects(reading(consumer, undefined, away.url).ended, { code: "UNAVAILABLE" });
  const other = await startTestNats();
  const there = await connect({ servers: `127.0.0.1:${other.port}` });
  await (await there.jetstreamManager()).streams.add({ name: consumer.stream, subjects: ["x"] });
  await there.close();
  const reader = reading(consumer, undefined, other.url);
  await reader.isReady;
  await other.stop();
  await assert.rejects(reader.ended, { code: "UNAVAILABLE" });
});

test("a consumer that is deleted ends the reading, so that the next one makes it again", LIMIT, async () => {
  const consumer = await stream();
  const reader = reading(consumer);
  await reader.isReady;
  await manager.consumers.delete(consumer.stream, "flow");
  await assert.rejects(reader.ended, { code: "UNAVAILABLE" });
});
