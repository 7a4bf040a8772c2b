import assert from "node:assert/strict";
import { test } from "node:test";
import { lineText } from "../../../src/cli/executions/logs.ts";
import { createTaskLines } from "../../../src/cli/progress/task-lines.ts";
import { PLAIN } from "../../../src/cli/terminal/style.ts";
import { type EventRecord, toRecord } from "../../../src/schema/rules/event-record.ts";
import type { FlowEvent, TaskLog } from "../../../src/schema/words/event.ts";

// `flow logs` joins what events tell of a task's output.

const REF = { command_id: "12", attempt: 1, step: "load", worker: "w", task: "copy", task_run_id: "12-0-0", run: 1 };

function record(event: FlowEvent): EventRecord {
  return toRecord(event, { eventId: 1, executionId: "7", catalogId: "3", path: "p" });
}

const progress = (log: TaskLog | undefined, more: object = {}) =>
  record({ type: "task.progress", at: 0, ...REF, progress: {}, ...(log !== undefined && { log }), ...more });
const done = (log: TaskLog | undefined, more: object = {}) =>
  record({
    ...{ type: "task.done", at: 0, ...REF, status: "ok", final: true, duration_ms: 1 },
    ...{ ...(log !== undefined && { log }), ...more },
  } as FlowEvent);

/** What is printed of these events. */
function printed(...records: EventRecord[]): string[] {
  const lines = createTaskLines();
  return records.flatMap((one) => lines.take(one)).map((line) => lineText(line, PLAIN));
}

test("lines that arrived while a task ran are not repeated at its end", () => {
  const told = printed(
    progress({ lines: ["a", "b"] }),
    progress({ lines: ["c"], from: 2 }),
    done({ lines: ["a", "b", "c", "d"] }),
  );
  assert.deepEqual(told, ["load/copy  a", "load/copy  b", "load/copy  c", "load/copy  d"]);
});

test("lines that no event has are counted in their place", () => {
  const told = printed(progress({ lines: ["b"], from: 4 }), done({ lines: ["x", "y"], dropped: 9 }));
  const at = "load/copy  ";
  assert.deepEqual(told, [`${at}… 4 lines not kept`, `${at}b`, `${at}… 4 lines not kept`, `${at}x`, `${at}y`]);
  assert.deepEqual(printed(done({ lines: [], dropped: 1 })), [`${at}… 1 line not kept`]);
});

test("each run, iteration and claim has lines of its own", () => {
  const told = printed(
    progress({ lines: ["a"] }, { iteration: 1 }),
    progress({ lines: ["a"] }, { iteration: 2, task: "load" }),
    done({ lines: ["a"] }, { run: 2 }),
    done({ lines: ["a"] }, { attempt: 2 }),
    done({ lines: ["a", "b"] }, { iteration: 1 }),
  );
  assert.deepEqual(told, ["load[1]/copy  a", "load[2]  a", "load/copy  a", "load/copy  a", "load[1]/copy  b"]);
});

test("events without lines, and of other kinds, print nothing; what a task writes cannot move the cursor", () => {
  const skipped = record({ type: "step.skipped", at: 0, step: "x", reason: "when", set: [], next: [] });
  assert.deepEqual(printed(done(undefined), progress(undefined), skipped), []);
  const [line = ""] = printed(done({ lines: ["\u001b[2J\rgone\u0007"] }));
  assert.doesNotMatch(line, /[\u0000-\u001f]/);
});
