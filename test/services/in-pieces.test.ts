import assert from "node:assert/strict";
import { test } from "node:test";
import { atOnce, type Pieces } from "../../src/language/words/pieces.ts";
import { inPieces } from "../../src/services/in-pieces.ts";

/** Pieces of more than a turn each, and what happened, in order. */
function* slow(count: number, told: string[]): Pieces<string> {
  for (let piece = 0; piece < count; piece += 1) {
    const began = performance.now();
    while (performance.now() - began < 6);
    told.push(`piece ${piece}`);
    yield;
  }
  told.push("end");
  return "done";
}

test("between long pieces others have their turn, and once more after the last", async () => {
  const told: string[] = [];
  let next: NodeJS.Immediate;
  const other = () => {
    told.push("other");
    next = setImmediate(other);
  };
  next = setImmediate(other);
  assert.equal(await inPieces(slow(3, told)), "done");
  clearImmediate(next);
  assert.deepEqual(told, ["piece 0", "other", "piece 1", "other", "piece 2", "other", "end", "other"]);
});

test("short work does not yield", async () => {
  let isDone = false;
  const working = inPieces(slow(0, [])).then(() => {
    isDone = true;
  });
  await new Promise<void>((resolve) => process.nextTick(resolve));
  assert.equal(isDone, true);
  await working;
});

test("synchronously, nothing else runs; errors of a piece are thrown", async () => {
  const told: string[] = [];
  assert.equal(atOnce(slow(2, told)), "done");
  assert.deepEqual(told, ["piece 0", "piece 1", "end"]);
  // biome-ignore lint/correctness/useYield: it fails before its first piece.
  function* failing(): Pieces<never> {
    throw new Error("no");
  }
  assert.throws(() => atOnce(failing()), /no/);
  await assert.rejects(inPieces(failing()), /no/);
});
