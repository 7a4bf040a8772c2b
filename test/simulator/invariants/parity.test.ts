import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventRecord } from "../../../src/schema/rules/event-record.ts";
import { eventLines } from "../../parity/support/event-lines.ts";
import { PLAYBOOKS } from "../playbooks.ts";
import { simulate } from "../simulate.ts";
import { localRun } from "./expected.ts";

/* What takes minutes on both runtimes: their events are compared as in `test/parity`, in virtual time. */

/** Ids are shorter here than those that are left out there where they stand within a text. */
const linesOf = (log: readonly EventRecord[]) =>
  eventLines(log, "parts").map((line) => line.replace(/\b\d{10,14}\b/g, "…"));

test("retries that are parked: servers with workers write what the local runtime writes, event by event", async () => {
  const playbook = PLAYBOOKS.find(({ name }) => name === "retries that are parked");
  assert.ok(playbook);
  const { state, log } = await localRun(playbook);
  assert.equal(state.status, "COMPLETED", JSON.stringify(state.error));
  const local = linesOf(log);
  const parked = log.filter(({ event_type }) => event_type === "command.parked");
  // Two of the pipeline, one of each iteration, one that its step's time ends.
  assert.equal(parked.length, 6);
  const { tables, started } = await simulate(playbook);
  assert.ok(started.size > 0);
  for (const id of started.values()) {
    assert.deepEqual(linesOf(tables.store.events.get(id) ?? []), local);
  }
});
