import assert from "node:assert/strict";
import { test } from "node:test";
import { COMMANDS_SUBJECT, decodeNotices, encodeNotices, SENT_IDS_MAX } from "../../../src/adapters/nats/message.ts";
import { createNatsOutbox } from "../../../src/adapters/nats/outbox.ts";
import { NOTICE_COMMANDS_MAX, type Notice } from "../../../src/schema/words/notice.ts";

function commands(...commandIds: string[]): Notice {
  return { kind: "commands", commandIds };
}

function changed(executionId: string, lastEventId: string): Notice {
  return { kind: "execution", executionId, lastEventId };
}

test("commands of several notices leave as one, each once, in the order in which they came", () => {
  const outbox = createNatsOutbox(100);
  outbox.add(commands("1", "2"));
  outbox.add(commands("2", "3"));
  assert.equal(outbox.size(), 3);
  assert.deepEqual(outbox.take(100), [commands("1", "2", "3")]);
  assert.deepEqual([outbox.size(), outbox.take(100)], [0, []]);
});

test("only the newest event of an execution is kept, also when an older notice is put back", () => {
  const outbox = createNatsOutbox(100);
  outbox.add(changed("7", "10"));
  outbox.add(changed("7", "9"));
  outbox.add(changed("8", "1"));
  outbox.add({ kind: "cancel", executionId: "7" });
  assert.deepEqual(outbox.take(100), [changed("7", "10"), changed("8", "1"), { kind: "cancel", executionId: "7" }]);
});

test("what is beyond the capacity pushes the oldest out, and is counted", () => {
  const outbox = createNatsOutbox(3);
  assert.equal(outbox.add(commands("1", "2", "3")), 0);
  assert.equal(outbox.add(changed("9", "1")), 1);
  assert.equal(outbox.add(commands("4", "5", "6", "7")), 4);
  assert.deepEqual(outbox.take(100), [commands("5", "6", "7")]);
});

test("at most so many are taken as asked for, the oldest", () => {
  const outbox = createNatsOutbox(100);
  outbox.add(commands("1", "2", "3"));
  assert.deepEqual(outbox.take(2), [commands("1", "2")]);
  assert.deepEqual(outbox.take(2), [commands("3")]);
});

test("notices of more commands than one may name are several", () => {
  const outbox = createNatsOutbox(10_000);
  const ids = Array.from({ length: NOTICE_COMMANDS_MAX + 1 }, (_, index) => String(index + 1));
  outbox.add(commands(...ids.slice(1)));
  outbox.add(commands("1"));
  assert.deepEqual(
    outbox.take(10_000).map((notice) => notice.kind === "commands" && notice.commandIds.length),
    [NOTICE_COMMANDS_MAX, 1],
  );
});

test("the largest messages that are sent are understood", () => {
  const id = (index: number) => String(Number.MAX_SAFE_INTEGER - index);
  for (const notice of [(index: number) => commands(id(index)), (index: number) => changed(id(index), id(0))]) {
    const outbox = createNatsOutbox(10_000);
    for (let index = 0; index < 2 * SENT_IDS_MAX; index += 1) outbox.add(notice(index));
    const taken = outbox.take(SENT_IDS_MAX);
    for (const { text } of encodeNotices("a", taken)) {
      assert.deepEqual(decodeNotices(new TextEncoder().encode(text)), { from: "a", notices: taken });
    }
  }
});

test("only notices of commands go where the stream keeps them", () => {
  const messages = encodeNotices("a", [commands("1"), changed("2", "3"), { kind: "cancel", executionId: "4" }]);
  assert.deepEqual(
    messages.map(({ subject, text }) => [subject === COMMANDS_SUBJECT, JSON.parse(text).notices.length]),
    [
      [true, 1],
      [false, 2],
    ],
  );
});
