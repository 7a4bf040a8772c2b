import assert from "node:assert/strict";
import { test } from "node:test";
import { createEchoes } from "../../../src/services/workers/own-notices.ts";

test("what this process told is its echo once; the same again is news, as the reaper's is", () => {
  const echoes = createEchoes();
  echoes.told(["1", "2"]);
  assert.deepEqual(echoes.fromOthers(["1", "3"]), ["3"]);
  assert.deepEqual(echoes.fromOthers(["1", "2"]), ["1"]);
});

test("echoes that never come back do not fill the memory", () => {
  const echoes = createEchoes();
  const ids = Array.from({ length: 30_000 }, (_, index) => String(index));
  echoes.told(ids);
  assert.deepEqual(echoes.fromOthers(["0", "29999"]), ["0"]);
});
