import assert from "node:assert/strict";
import { test } from "node:test";
import { loadedReferences } from "../../../src/language/template/loaded-references.ts";
import { ReferenceNeeded } from "../../../src/language/views/references.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";
import type { Json } from "../../../src/schema/words/json.ts";

// Payloads on demand: an evaluation is run again until it has all that it reads.

function setup(payloads: Record<string, Json>) {
  const loads: string[] = [];
  const references = loadedReferences({
    async load(ref) {
      loads.push(ref);
      const payload = payloads[ref];
      if (payload === undefined) throw new FlowError("REFERENCE_NOT_AVAILABLE", `${ref} is lost`);
      return payload;
    },
  });
  /** Reads a payload as a view does. */
  const read = (ref: string): Json => {
    const payload = references.get(ref);
    if (payload === undefined) throw new ReferenceNeeded(ref);
    return payload;
  };
  return { references, read, loads };
}

test("an evaluation that needs several payloads gets each once", async () => {
  const { references, read, loads } = setup({ a: 1, b: 2 });
  const value = await references.evaluate(() => [read("a"), read("b"), read("a")]);
  assert.deepEqual(
    [value, loads],
    [
      [1, 2, 1],
      ["a", "b"],
    ],
  );
  await references.evaluate(() => read("b"));
  assert.equal(loads.length, 2, "It is kept for the next evaluation");
});

test("an evaluation that needs none loads none and throws what it throws", async () => {
  const { references, loads } = setup({});
  assert.equal(await references.evaluate(() => 5), 5);
  const fail = () => {
    throw new TypeError("mine");
  };
  await assert.rejects(references.evaluate(fail), TypeError);
  assert.deepEqual(loads, []);
});

test("one evaluation may need more payloads than are kept, of which the newest are", async () => {
  const refs = Array.from({ length: 40 }, (_, index) => `r${index}`);
  const { references, read, loads } = setup(Object.fromEntries(refs.map((ref) => [ref, ref])));
  assert.deepEqual(await references.evaluate(() => refs.map(read)), refs);
  assert.equal(loads.length, 40);
  await references.evaluate(() => read("r39"));
  assert.equal(loads.length, 40);
  await references.evaluate(() => read("r0"));
  assert.equal(loads.length, 41);
});

test("a lost payload throws where it is read, so that the evaluation may take it", async () => {
  const { references, read } = setup({ a: 1 });
  const lost = (error: unknown) => error instanceof FlowError && error.code === "REFERENCE_NOT_AVAILABLE";
  const careful = () => {
    try {
      return read("lost");
    } catch (error) {
      if (error instanceof ReferenceNeeded) throw error;
      assert.ok(lost(error));
      return read("a");
    }
  };
  assert.equal(await references.evaluate(careful), 1);
  await assert.rejects(
    references.evaluate(() => read("lost")),
    lost,
  );
});

test("a payload that was lost is asked for again by the next evaluation", async () => {
  const payloads: Record<string, Json> = {};
  const { references, read } = setup(payloads);
  await assert.rejects(references.evaluate(() => read("a")));
  payloads["a"] = 1;
  assert.equal(await references.evaluate(() => read("a")), 1);
});

test("a store that fails otherwise fails the evaluation, which cannot take that", async () => {
  const references = loadedReferences({ load: () => Promise.reject(new Error("the disk is gone")) });
  const read = () => {
    if (references.get("a") === undefined) throw new ReferenceNeeded("a");
  };
  await assert.rejects(references.evaluate(read), /the disk is gone/);
});

test("evaluations that take turns do not disturb each other", async () => {
  const { references, read } = setup({ a: 1, b: 2, c: 3 });
  const all = await Promise.allSettled([
    references.evaluate(() => (read("a") as number) + (read("b") as number)),
    references.evaluate(() => read("lost")),
    references.evaluate(() => (read("c") as number) + (read("a") as number)),
  ]);
  assert.deepEqual(
    all.map((end) => (end.status === "fulfilled" ? end.value : "lost")),
    [3, "lost", 4],
  );
});

test("what will be asked for next is loaded with it, so that the evaluation is run again once", async () => {
  const refs = Array.from({ length: 30 }, (_, index) => `r${index}`);
  const { references, loads } = setup(Object.fromEntries(refs.map((ref) => [ref, ref])));
  let runs = 0;
  const readAll = () => {
    runs += 1;
    return refs.map((ref) => {
      const payload = references.get(ref);
      if (payload === undefined) throw new ReferenceNeeded(ref, refs);
      return payload;
    });
  };
  assert.deepEqual(await references.evaluate(readAll), refs);
  assert.deepEqual([runs, loads.length], [2, 30]);
});

test("one lost payload among many ends the loading of the others", async () => {
  const { references, loads } = setup({ a: 1, c: 3 });
  const read = () => {
    if (references.get("a") === undefined) throw new ReferenceNeeded("a", ["a", "b", "c"]);
    return references.get("b");
  };
  await assert.rejects(references.evaluate(read), /b is lost/);
  assert.deepEqual(loads, ["a", "b"]);
});

test("a payload that is stored anew is forgotten and loaded again", async () => {
  const payloads: Record<string, Json> = { a: 1 };
  const { references, read } = setup(payloads);
  assert.equal(await references.evaluate(() => read("a")), 1);
  payloads["a"] = 2;
  assert.equal(await references.evaluate(() => read("a")), 1);
  references.forget("a");
  assert.equal(await references.evaluate(() => read("a")), 2);
});

test("a payload that is null is loaded once", async () => {
  const { references, read, loads } = setup({ a: null });
  assert.equal(await references.evaluate(() => read("a")), null);
  assert.deepEqual(loads, ["a"]);
});

test("an evaluation that needs many payloads keeps them while others end", async () => {
  const refs = Array.from({ length: 40 }, (_, index) => `r${index}`);
  const { references, read, loads } = setup(Object.fromEntries([...refs, "a", "b"].map((ref) => [ref, ref])));
  const many = references.evaluate(() => refs.map(read));
  for (let time = 0; time < 60; time += 1) await references.evaluate(() => read(time % 2 === 0 ? "a" : "b"));
  assert.deepEqual(await many, refs);
  assert.equal(loads.filter((ref) => ref.startsWith("r")).length, 40);
});
