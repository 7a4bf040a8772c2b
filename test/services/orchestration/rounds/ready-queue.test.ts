import assert from "node:assert/strict";
import { test } from "node:test";
import type { Command } from "../../../../src/schema/words/command.ts";
import {
  createReadyQueue,
  GROUP_MAX,
  type ReadyEntry,
  type ReadyQueue,
  type Verdict,
} from "../../../../src/services/orchestration/rounds/ready-queue.ts";

const ANY = { kinds: undefined, labels: {} };
const take = (): Verdict => "take";

function entry(id: number, more: Partial<ReadyEntry> = {}): ReadyEntry {
  return { commandId: String(id), executionId: "1", kinds: [], labels: null, attempt: 0, readyAt: 0, ...more };
}

test("commands are taken in the order in which they came, whatever they require", () => {
  const ready = createReadyQueue();
  ready.add(entry(3, { kinds: ["http"] }));
  ready.add(entry(1));
  ready.add(entry(2, { kinds: ["http"] }));
  assert.deepEqual(
    [1, 2, 3, 4].map(() => ready.take(ANY, take)?.commandId),
    ["3", "1", "2", undefined],
  );
  assert.equal(ready.size(), 0);
});

test("a worker gets only commands for which it has all kinds and labels", () => {
  const ready = createReadyQueue();
  ready.add(entry(1, { kinds: ["http", "shell"] }));
  ready.add(entry(2, { kinds: ["http"], labels: { zone: "a" } }));
  const http = { kinds: ["http"], labels: {} };
  assert.equal(ready.take(http, take), undefined);
  assert.equal(ready.take({ kinds: ["http"], labels: { zone: "b" } }, take), undefined);
  assert.equal(ready.take({ kinds: ["http"], labels: { zone: "a" } }, take)?.commandId, "2");
  assert.equal(ready.take({ kinds: ["shell", "http"], labels: {} }, take)?.commandId, "1");
});

test("no worker has the labels that every object inherits", () => {
  const ready = createReadyQueue();
  ready.add(entry(1, { labels: { toString: "x" } }));
  assert.equal(ready.take({ kinds: undefined, labels: {} }, take), undefined);
});

test("a command that cannot be taken at the moment stays, a command that can never be taken is dropped", () => {
  const ready = createReadyQueue();
  for (const id of [1, 2, 3]) ready.add(entry(id));
  const verdicts: Record<string, Verdict> = { 1: "skip", 2: "drop", 3: "take" };
  assert.equal(ready.take(ANY, ({ commandId }) => verdicts[commandId] ?? "skip")?.commandId, "3");
  assert.deepEqual(["1", "2", "3"].map(ready.has), [true, false, false]);
});

test("a known command is not added again, except under a later claim", () => {
  const ready = createReadyQueue();
  ready.add(entry(1, { attempt: 1 }));
  ready.add(entry(1, { attempt: 0 }));
  assert.equal(ready.size(), 1);
  ready.add(entry(1, { attempt: 2 }));
  assert.equal(ready.size(), 1);
  assert.equal(ready.take(ANY, take)?.attempt, 2);
});

test("what a refused round has added leaves, unless the store has named it since; what a written one has added stays", () => {
  const ready = createReadyQueue();
  for (const id of [1, 2, 3]) ready.add(entry(id, { isTentative: true }));
  ready.add(entry(2));
  ready.settle("1", false);
  ready.settle("2", false);
  ready.settle("3", true);
  assert.deepEqual(["1", "2", "3"].map(ready.has), [false, true, true]);
  // A later round that adds it again and is refused takes nothing from it.
  ready.add(entry(3, { isTentative: true }));
  ready.settle("3", false);
  assert.equal(ready.has("3"), true);
  const taken = [1, 2].map(() => ready.take(ANY, take));
  assert.deepEqual(
    taken.map((one) => one?.isTentative),
    [undefined, undefined],
  );
});

test("what a round has added and taken, and the store has named since, stays when the round is refused", () => {
  const ready = createReadyQueue();
  ready.add(entry(1, { isTentative: true, attempt: 1 }));
  assert.equal(ready.take(ANY, take)?.isTentative, true);
  ready.add(entry(1, { attempt: 1 }));
  ready.settle("1", false);
  assert.equal(ready.has("1"), true);
});

test("a search gives up after passing over many commands of a group, and finds commands of another group", () => {
  const ready = createReadyQueue();
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

/** Adds so many of a group, from an id on; gives how many had room. */
function fill(ready: ReadyQueue, kind: string, first: number, count: number): number {
  const ids = Array.from({ length: count }, (_, index) => first + index);
  return ids.filter((id) => ready.add(entry(id, { kinds: [kind] }))).length;
}
const SMALL = { groupMax: 10, readyMax: 100, groupMin: 2 };
const requirementOf = (kind: string) => ({ kinds: [kind], labels: null });

test("a group that is full leaves room for the others", () => {
  const ready = createReadyQueue();
  assert.equal(fill(ready, "gpu", 1, GROUP_MAX + 1), GROUP_MAX);
  assert.ok(ready.add(entry(100_000)));
  assert.equal(ready.take(ANY, ({ kinds }) => (kinds.length === 0 ? "take" : "skip"))?.commandId, "100000");
});

test("a full queue has room for some commands of every group", () => {
  const ready = createReadyQueue({ groupMax: 10, readyMax: 20, groupMin: 2 });
  assert.deepEqual([fill(ready, "a", 1, 10), fill(ready, "b", 20, 10)], [10, 10]);
  assert.deepEqual(
    [40, 41, 42].map((id) => ready.add(entry(id, { kinds: ["c"] }))),
    [true, true, false],
  );
});

const BODY = { command_id: "1" } as Command;
/** Adds commands with their bodies to a group, and gives how many of those that are taken from it have one. */
function bodiesOf(ready: ReadyQueue, kind: string, first: number, count: number): number {
  for (let id = first; id < first + count; id += 1) ready.add(entry(id, { kinds: [kind], body: BODY }));
  const taken = Array.from({ length: count }, () => ready.take({ kinds: [kind], labels: {} }, take));
  return taken.filter((one) => one?.body !== undefined).length;
}

test("a queue that is full of commands from the store keeps the bodies of those that are issued here", () => {
  const ready = createReadyQueue({ groupMax: 10, readyMax: 20, groupMin: 2 });
  assert.deepEqual([fill(ready, "a", 1, 10), fill(ready, "b", 20, 10)], [10, 10]);
  assert.equal(bodiesOf(ready, "c", 40, 2), 2);
});

test("bodies are kept up to the size of the queue; beyond, up to twice as many, of groups that do not wait", () => {
  const ready = createReadyQueue({ groupMax: 20, readyMax: 20, groupMin: 2 });
  for (let id = 1; id <= 20; id += 1) ready.add(entry(id, { kinds: ["waits"], body: BODY }));
  assert.equal(bodiesOf(ready, "moves", 100, 2), 2, "while it is short, a group is likely to be claimed soon");
  assert.equal(bodiesOf(ready, "moves", 200, 2), 2, "what was taken frees its place");
  for (let group = 0; group < 10; group += 1) {
    for (let id = 0; id < 2; id += 1) {
      ready.add(entry(1_000 + 2 * group + id, { kinds: [`group ${group}`], body: BODY }));
    }
  }
  assert.equal(bodiesOf(ready, "one too many", 5_000, 2), 0);
});

test("a group reports that it left commands out once half of it is gone, and no newer command overtakes them", () => {
  let told = 0;
  const ready = createReadyQueue({ ...SMALL, onShort: () => (told += 1) });
  assert.equal(fill(ready, "http", 1, 10), 10);
  for (let id = 1; id <= 6; id += 1) ready.remove(String(id));
  assert.deepEqual([told, ready.short()], [0, []], "nothing was left out");
  assert.equal(fill(ready, "http", 11, 7), 6);
  assert.deepEqual(ready.short(), []);
  for (let id = 7; id <= 10; id += 1) ready.remove(String(id));
  assert.equal(told, 0);
  ready.remove("11");
  const [short] = ready.short();
  const { isCut: _, newest: __, ...room } = short ?? assert.fail();
  assert.deepEqual([told, room], [1, { requirement: requirementOf("http"), known: 5, room: 5, refused: 1 }]);
  assert.equal(ready.add(entry(18, { kinds: ["http"] })), false, "17 was first");
  const read = [12, 13, 17, 18].map((id) => entry(id, { kinds: ["http"] }));
  assert.equal(ready.addRead(requirementOf("http"), { entries: read, isAll: true, refused: 2 }), 2);
  assert.deepEqual(ready.short(), []);
  assert.equal(ready.add(entry(19, { kinds: ["http"] })), true);
  assert.deepEqual(
    Array.from({ length: 8 }, () => ready.take(ANY, take)?.commandId),
    ["12", "13", "14", "15", "16", "17", "18", "19"],
  );
});

test("a group stays marked as incomplete while the store has more commands, or some arrived meanwhile", () => {
  const ready = createReadyQueue(SMALL);
  fill(ready, "http", 1, 11);
  for (let id = 1; id <= 10; id += 1) ready.remove(String(id));
  const read = (isAll: boolean, refused: number) =>
    ready.addRead(requirementOf("http"), { entries: [entry(11, { kinds: ["http"] })], isAll, refused });
  read(false, 1);
  assert.equal(ready.short().length, 1, "there are more");
  read(true, 0);
  assert.equal(ready.short().length, 1, "one came after it was read");
  read(true, 1);
  assert.equal(ready.short().length, 0);
  ready.remove("11");
  assert.deepEqual([ready.size(), ready.roomOf(requirementOf("http")).refused], [0, 0], "an empty group is forgotten");
});

test("commands that were claimed before are never left out, and come first", () => {
  const ready = createReadyQueue(SMALL);
  fill(ready, "http", 1, 11);
  assert.equal(ready.add(entry(100, { kinds: ["http"], attempt: 1 })), true);
  ready.add(entry(200));
  assert.deepEqual(
    [1, 2, 3].map(() => ready.take(ANY, take)?.commandId),
    ["100", "1", "2"],
  );
});

test("the queue knows whether any command suits a worker", () => {
  const ready = createReadyQueue();
  ready.add(entry(1, { kinds: ["http"], labels: { zone: "a" } }));
  assert.equal(ready.suits({ kinds: ["http"], labels: {} }), false);
  assert.equal(ready.suits({ kinds: ["http"], labels: { zone: "a" } }), true);
});
