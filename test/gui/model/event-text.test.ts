import assert from "node:assert/strict";
import { test } from "node:test";
import { EVENT_TYPES, eventText } from "../../../gui/src/execution/events/text.ts";

/* What the list of events says of steering, in one line each. */

function textOf(event_type: string, meta?: unknown, more: object = {}): string {
  return eventText({ event_type, meta, ...more });
}

test("what people did to an execution says by whom and why", () => {
  const by = { by: "ada@example.com", reason: "quota" };
  const cases: [string, unknown, string][] = [
    ["execution.paused", { ...by, cascade: true }, "with what it has called, by ada@example.com, quota"],
    ["execution.paused", { by: "operator" }, "it alone, by operator"],
    ["execution.resumed", { by: "operator" }, "by operator"],
    ["step.overridden", { action: "skip", ...by }, "skipped by hand, by ada@example.com, quota"],
    ["step.overridden", { action: "complete", ...by }, "completed by hand, by ada@example.com, quota"],
    ["step.overridden", { action: "fail", iteration: 0, reason: "bad" }, "iteration 0 failed by hand, bad"],
    ["step.overridden", { action: "other", reason: "new" }, "ended by hand, new"],
  ];
  for (const [type, meta, expected] of cases) assert.equal(textOf(type, meta), expected);
});

test("a rerun says what it repeats, what it takes over and where it goes on", () => {
  const rerun = { execution_id: "7211", from: ["load", "report"], by: "operator", reason: "late" };
  const cases: [string, unknown, string][] = [
    ["playbook.initialized", { rerun }, "repeats 7211 from load, report, by operator, late"],
    ["playbook.initialized", { rerun: { execution_id: "7211", from: "start" } }, "repeats 7211 from the start"],
    ["playbook.initialized", { path: "etl/load" }, ""],
    ["workflow.restored", { waiting: ["load"] }, "goes on with load"],
    ["workflow.restored", { waiting: [] }, "nothing is left to run"],
    [
      "loop.results.kept",
      {
        iterations: [
          [0, 1200],
          [1203, 1205],
        ],
      },
      "1,202 iterations reused",
    ],
    ["loop.results.kept", { iterations: [] }, "0 iterations reused"],
    ["step.skipped", { reused_from: { execution_id: "7211" } }, "reused from 7211"],
  ];
  for (const [type, meta, expected] of cases) assert.equal(textOf(type, meta), expected);
  const copy = textOf("step.completed", { reused_from: { execution_id: "7211" } }, { duration_ms: 12.4 });
  assert.equal(copy, "reused from 7211, 12 ms");
});

test("an event without what it would say, as a page leaves out what is long, says the rest", () => {
  for (const type of EVENT_TYPES) assert.equal(textOf(type), "");
  assert.equal(textOf("task.done", { rows: 3 }, { worker: "w", attempt: 2 }), "on w, attempt 2");
});
