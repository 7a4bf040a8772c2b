import assert from "node:assert/strict";
import { test } from "node:test";
import { BATCH_BYTES_MAX, BATCH_EVENTS_MAX, createOutboxQueue, type Part } from "../../src/worker/reporting/outbox.ts";

const text = (json: string, bytes = 10) => ({ json, bytes });
const texts = (parts: readonly Part<string>[]) =>
  parts.map(({ outbox, texts }) => [outbox.claim, ...texts.map(({ json }) => json)]);

test("a request takes what every command has, the longest waiting first", () => {
  const queue = createOutboxQueue<string>();
  const [a, b] = [queue.open("a"), queue.open("b")];
  queue.add(b, [text("b1")], false);
  queue.add(a, [text("a1"), text("a2")], true);
  queue.add(b, [text("b2")], false);
  const parts = queue.take();
  assert.deepEqual(texts(parts), [
    ["b", "b1", "b2"],
    ["a", "a1", "a2"],
  ]);
  assert.deepEqual(
    parts.map(({ ends }) => ends),
    [false, true],
  );
  assert.deepEqual([queue.take(), queue.isEmpty(), queue.bytes()], [[], true, 40]);
  for (const part of parts) queue.answered(part);
  assert.equal(queue.bytes(), 0);
});

test("events wait while earlier ones of their command are under way", () => {
  const queue = createOutboxQueue<string>();
  const a = queue.open("a");
  queue.add(a, [text("a1")], false);
  const [first] = queue.take();
  queue.add(a, [text("a2")], true);
  assert.deepEqual([queue.isEmpty(), queue.isUrgent(), queue.take()], [true, false, []]);
  assert.ok(first !== undefined);
  queue.answered(first);
  assert.equal(queue.isUrgent(), true);
  assert.deepEqual(texts(queue.take()), [["a", "a2"]]);
});

test("an end is urgent, and so is more than one request holds; the rest waits for company", () => {
  const queue = createOutboxQueue<string>();
  queue.add(queue.open("a"), [text("a1")], false);
  assert.equal(queue.isUrgent(), false);
  queue.add(
    queue.open("b"),
    Array.from({ length: BATCH_EVENTS_MAX }, () => text("b")),
    false,
  );
  assert.equal(queue.isUrgent(), true);
  const parts = queue.take();
  assert.equal(
    parts.reduce((sum, part) => sum + part.texts.length, 0),
    BATCH_EVENTS_MAX,
  );
  assert.equal(queue.isUrgent(), false);
  const large = createOutboxQueue<string>();
  large.add(large.open("c"), [text("c", BATCH_BYTES_MAX)], false);
  assert.equal(large.isUrgent(), true);
});

test("a request holds no more bytes than it may, in order, and the part that holds the end says so", () => {
  const queue = createOutboxQueue<string>();
  const a = queue.open("a");
  const third = Math.floor(BATCH_BYTES_MAX / 3);
  queue.add(
    a,
    [1, 2, 3, 4].map((n) => text(`a${n}`, third)),
    true,
  );
  queue.add(queue.open("b"), [text("b1", 1)], true);
  const [first, ...others] = queue.take();
  assert.deepEqual([first?.texts.map(({ json }) => json), first?.ends, others], [["a1", "a2", "a3"], false, []]);
  assert.deepEqual(texts(queue.take()), [["b", "b1"]], "another command need not wait for it");
  assert.ok(first !== undefined);
  queue.answered(first);
  const [last] = queue.take();
  assert.deepEqual([last?.texts.map(({ json }) => json), last?.ends], [["a4"], true]);
});

test("what is cleared is neither sent nor counted", () => {
  const queue = createOutboxQueue<string>();
  const [a, b] = [queue.open("a"), queue.open("b")];
  queue.add(a, [text("a1")], true);
  queue.add(b, [text("b1")], false);
  queue.clear(a);
  assert.deepEqual([queue.isUrgent(), queue.bytes()], [false, 10]);
  assert.deepEqual(texts(queue.take()), [["b", "b1"]]);
  queue.add(b, [text("b2")], true);
  queue.clear(b);
  assert.equal(queue.bytes(), 10, "what is under way is counted until it is answered");
});

test("of what only the newest counts one waits, where the first of them stood; what is under way is left alone", () => {
  const queue = createOutboxQueue<string>();
  const a = queue.open("a");
  const newest = (json: string, bytes: number, newestOf = "t") => ({ json, bytes, newestOf });
  queue.add(a, [newest("p1", 10)], false);
  const [first] = queue.take();
  queue.add(a, [newest("p2", 10), text("a1"), newest("other", 10, "u")], false);
  for (let count = 3; count <= 1_000; count += 1) queue.add(a, [newest(`p${count}`, count)], false);
  assert.deepEqual([first?.texts.map(({ json }) => json), queue.bytes()], [["p1"], 1_030]);
  assert.ok(first !== undefined);
  queue.answered(first);
  queue.add(a, [newest("last", 5), text("end")], true);
  assert.equal(queue.bytes(), 35);
  assert.deepEqual(texts(queue.take()), [["a", "last", "a1", "other", "end"]]);
});
