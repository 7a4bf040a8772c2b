import assert from "node:assert/strict";
import { test } from "node:test";
import { openCommand } from "../../../../src/engine/state/state.ts";
import {
  loadExecution,
  noteIssued,
  SNAPSHOT_FORMAT,
  snapshotText,
} from "../../../../src/services/orchestration/memory/load-execution.ts";
import { beginLive } from "../../../support/service/live.ts";

const PARALLEL = "workflow: [{ step: a, next: [{ step: b }, { step: c }] }, { step: b }, { step: c }]";

const issued = (command_id: string) =>
  ({ type: "command.issued", at: 0, command_id, step: "a", step_run_id: "1", command_kind: "noop" }) as never;

test("a snapshot has the state and the events that announced its open commands; a snapshot of an older version has the state alone", async () => {
  const { live, commands } = beginLive(PARALLEL);
  const [first] = commands;
  assert.ok(first !== undefined);
  noteIssued(live.issued, issued(first.command_id), 90);
  const load = (state: string) =>
    loadExecution(
      {
        store: {
          find: async () => ({
            ...{ executionId: "7", catalogId: "1", path: "p", version: 1, status: "RUNNING", lastEventId: 100 },
            ...{ parentExecutionId: null, rootExecutionId: "7", startedBy: null },
            snapshot: { eventId: 100, format: SNAPSHOT_FORMAT, state },
          }),
          eventsAfter: async () => [],
        },
        programs: async () => live.source,
        results: { load: () => Promise.reject(new Error("There is no payload")) },
      },
      "7",
    );
  const loaded = await load(snapshotText(live));
  assert.deepEqual(loaded?.state, JSON.parse(JSON.stringify(live.state)));
  assert.deepEqual([...(loaded?.issued ?? [])], [[first.command_id, 90]]);
  assert.notEqual(loaded && openCommand(loaded.state, first.command_id), undefined);
  const older = await load(JSON.stringify(live.state));
  assert.deepEqual(older?.state, loaded?.state);
  assert.equal(older?.issued.size, 0);
});

test("the event that announced a command is forgotten with the command's end", () => {
  const { live } = beginLive(PARALLEL);
  const ref = { at: 0, command_id: "5", step: "a", attempt: 1 };
  for (const end of ["command.completed", "command.failed", "command.cancelled"] as const) {
    noteIssued(live.issued, issued("5"), 90);
    assert.equal(live.issued.size, 1);
    const error = { kind: "unknown", code: "X", message: "no", retryable: false } as const;
    noteIssued(live.issued, { ...ref, type: end, error } as never, 91);
    assert.equal(live.issued.size, 0, end);
  }
});
