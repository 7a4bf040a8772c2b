import assert from "node:assert/strict";
import { test } from "node:test";
import { createReadyCommands, READY_MAX, type ReadyEntry, type Verdict } from "../../src/services/ready-commands.ts";

const ANY = { kinds: undefined, labels: {} };
const take = (): Verdict => "take";

function entry(id: number, more: Partial<ReadyEntry> = {}): ReadyEntry {
  return { commandId: String(id), executionId: "1", kinds: [], labels: null, attempt: 0, readyAt: 0, ...more };
}

test("commands are taken in the order in which they came, whatever they require", () => {
  const ready = createReadyCommands();
  ready.add(entry(3, { kinds: ["http"] }));
  ready.add(entry(1));
  ready.add(entry(2, { kinds: ["http"] }));
  assert.deepEqual(
    [1, 2, 3, 4].map(() => ready.take(ANY, take)?.commandId),
    ["3", "1", "2", undefined],
  );
  assert.equal(ready.size(), 0);
});

test("a worker is given what it has all kinds and labels for, and nothing else", () => {
  const ready = createReadyCommands();
  ready.add(entry(1, { kinds: ["http", "shell"] }));
  ready.add(entry(2, { kinds: ["http"], labels: { zone: "a" } }));
  const http = { kinds: ["http"], labels: {} };
  assert.equal(ready.take(http, take), undefined);
  assert.equal(ready.take({ kinds: ["http"], labels: { zone: "b" } }, take), undefined);
  assert.equal(ready.take({ kinds: ["http"], labels: { zone: "a" } }, take)?.commandId, "2");
  assert.equal(ready.take({ kinds: ["shell", "http"], labels: {} }, take)?.commandId, "1");
});

test("labels that every object inherits are labels of no worker", () => {
  const ready = createReadyCommands();
  ready.add(entry(1, { labels: { toString: "x" } }));
  assert.equal(ready.take({ kinds: undefined, labels: {} }, take), undefined);
});

test("a command that cannot be taken at the moment stays, one that never can is gone", () => {
  const ready = createReadyCommands();
  for (const id of [1, 2, 3]) ready.add(entry(id));
  const verdicts: Record<string, Verdict> = { 1: "skip", 2: "drop", 3: "take" };
  assert.equal(ready.take(ANY, ({ commandId }) => verdicts[commandId] ?? "skip")?.commandId, "3");
  assert.deepEqual(["1", "2", "3"].map(ready.has), [true, false, false]);
});

test("a command that is known is not added again, but under a later claim", () => {
  const ready = createReadyCommands();
  ready.add(entry(1, { attempt: 1 }));
  ready.add(entry(1, { attempt: 0 }));
  assert.equal(ready.size(), 1);
  ready.add(entry(1, { attempt: 2 }));
  assert.equal(ready.size(), 1);
  assert.equal(ready.take(ANY, take)?.attempt, 2);
});

test("a search gives up after many that are passed over, and finds what stands in another lane", () => {
  const ready = createReadyCommands();
  for (let id = 1; id <= 100; id += 1) ready.add(entry(id, { kinds: ["http"] }));
  ready.add(entry(200));
  let looked = 0;
  const judge = ({ kinds }: ReadyEntry): Verdict => {
    looked += 1;
    return kinds.length > 0 ? "skip" : "take";
  };
  assert.equal(ready.take(ANY, judge)?.commandId, "200");
  assert.ok(looked < 100, `It looked at ${looked}`);
});

test("no more are kept than there is room for", () => {
  const ready = createReadyCommands();
  for (let id = 1; id <= READY_MAX; id += 1) assert.ok(ready.add(entry(id)));
  assert.equal(ready.add(entry(READY_MAX + 1)), false);
  ready.remove("1");
  ready.remove("unknown");
  assert.equal(ready.add(entry(READY_MAX + 1)), true);
});
