import assert from "node:assert/strict";
import { test } from "node:test";
import { createOwnNotices } from "../../../src/services/workers/own-notices.ts";

test("an id that this process published is filtered out once; a repeat, such as the reaper's, passes", () => {
  const ownNotices = createOwnNotices();
  ownNotices.published(["1", "2"]);
  assert.deepEqual(ownNotices.fromOthers(["1", "3"]), ["3"]);
  assert.deepEqual(ownNotices.fromOthers(["1", "2"]), ["1"]);
});

test("notices that never come back do not fill the memory", () => {
  const ownNotices = createOwnNotices();
  const ids = Array.from({ length: 30_000 }, (_, index) => String(index));
  ownNotices.published(ids);
  assert.deepEqual(ownNotices.fromOthers(["0", "29999"]), ["0"]);
});
