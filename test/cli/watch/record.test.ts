import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { createRecorder } from "../../../src/cli/watch/record.ts";
import { emptyState } from "../../../src/engine/state/state.ts";
import { type EventRecord, fromRecord } from "../../../src/schema/rules/event-record.ts";
import { folderWith } from "../../support/service/cli-process.ts";
import { completed, skipped, started } from "../watched-run.ts";

test("every event can be read back from its line", async (t) => {
  const folder = await folderWith(t, {});
  const recorder = createRecorder("log.jsonl", folder);
  const state = { ...emptyState(), executionId: "7", catalogId: "demo", path: "demo" };
  const events = [started("a", 1), completed("a", 2), skipped("b", 3)];
  for (let round = 0; round < 1_000; round += 1) recorder.observe(state, events);
  assert.equal(recorder.close(), undefined);
  assert.equal(recorder.close(), undefined, "closing twice does no harm");
  const lines = (await readFile(join(folder, "log.jsonl"), "utf8")).trimEnd().split("\n");
  const records = lines.map((line) => JSON.parse(line) as EventRecord);
  assert.equal(records.length, 3_000);
  assert.deepEqual(records.slice(0, 3).map(fromRecord), events);
  assert.equal(records.at(-1)?.event_id, 3_000);
});

test("a full disk ends the log, not the run, and is reported at the end", () => {
  const recorder = createRecorder("/dev/full", "/");
  const state = { ...emptyState(), executionId: "7", path: "demo" };
  for (let round = 0; round < 2_000; round += 1) recorder.observe(state, [started("a", 1)]);
  const failure = recorder.close();
  assert.match(failure?.message ?? "", /^Cannot write the event log \/dev\/full: ENOSPC/);
});
