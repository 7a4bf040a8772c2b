import assert from "node:assert/strict";
import { test } from "node:test";
import { logRowsOf, logText, matchesOf } from "../../../gui/src/execution/log/log-rows.ts";
import { levelOf, logSectionsOf, withWholeLog } from "../../../gui/src/execution/log/sections.ts";
import { type TraceEvent, traceEventOf } from "../../../gui/src/execution/traced/trace-event.ts";
import type { ExecutionAnswer } from "../../../src/schema/api/executions.ts";

/* The log of a run: which lines stand where, and how grave they are. */

const BEGAN = Date.parse("2026-11-20T06:00:00.000Z");

let nextId = 1;
function event(type: string, ms: number, fields: Record<string, unknown> = {}): TraceEvent {
  nextId += 1;
  const of = { event_id: nextId, event_type: type, created_at: new Date(BEGAN + ms).toISOString() };
  const place = { node_id: "work", node_name: "work", command_id: "1", status: "COMPLETED" };
  const made = traceEventOf({ ...place, ...of, ...fields } as never);
  assert.ok(made !== undefined);
  return made;
}

const progress = (ms: number, from: number, ...lines: string[]) =>
  event("task.progress", ms, { meta: { run: 1, log: { lines, from } } });
const done = (ms: number, lines: string[], dropped = 0, fields: Record<string, unknown> = {}) =>
  event("task.done", ms, { duration_ms: ms, result: { context: { run: 1, log: { lines, dropped } } }, ...fields });

function rows(events: readonly TraceEvent[], more: Partial<Parameters<typeof logRowsOf>[0]> = {}) {
  const step = { name: "work", status: "COMPLETED", started_at: null, ended_at: null, runs: 1 };
  const execution = { execution_id: "100", steps: [step], ended_at: null } as unknown as ExecutionAnswer;
  const root = { execution, sections: logSectionsOf(events) };
  return logRowsOf({ root, called: new Map(), folded: new Set(), least: "debug", ...more });
}

test("lines have the time of the report that brought them, also after the end has brought all of them again", () => {
  const events = [progress(10, 0, "one"), progress(20, 1, "two"), done(30, ["one", "two", "three"])];
  const [section] = logSectionsOf(events);
  assert.deepEqual(
    section?.lines.map(({ text, at }) => `${text} ${at - BEGAN}`),
    ["one 10", "two 20", "three 30"],
  );
});

test("what was not kept at the beginning shifts the times of the rest, and is told", () => {
  const [section] = logSectionsOf([progress(10, 0, "one"), progress(20, 1, "two"), done(30, ["two"], 1)]);
  assert.deepEqual(
    section?.lines.map(({ text, at }) => `${text} ${at - BEGAN}`),
    ["two 20"],
  );
  assert.equal(section?.dropped, 1);
});

test("an attempt that failed says why and when it is tried again, once", () => {
  const error = { code: "ECONNREFUSED", message: "Nothing listens there" };
  const next = new Date(BEGAN + 2_100).toISOString();
  const events = [
    event("call.error", 100, { status: "FAILED", error, meta: { run: 1, next_run_at: next } }),
    event("task.done", 100, {
      status: "FAILED",
      error,
      duration_ms: 90,
      result: { context: { run: 1, next_run_at: next } },
    }),
  ];
  const [section] = logSectionsOf(events);
  assert.deepEqual(
    section?.lines.map(({ text, level }) => `${level}: ${text}`),
    ["error: ECONNREFUSED: Nothing listens there", "warn: Attempt 1 failed, trying again in 2.0 s"],
  );
});

test("a long log that was left out is marked, and filled with the event of its end", () => {
  const short = event("task.done", 30, { omitted: ["result"] });
  const [section] = logSectionsOf([short]);
  assert.equal(section?.isOmitted, true);
  const whole = withWholeLog(section as NonNullable<typeof section>, done(30, ["a", "b"]));
  assert.deepEqual([whole.isOmitted, whole.lines.map(({ text }) => text)], [false, ["a", "b"]]);
});

test("levels are those that loggers write, not words of a sentence", () => {
  const cases: [string, string][] = [
    ["ERROR something broke", "error"],
    ["2026-11-20 06:00:00 [warn] slow", "warn"],
    ['{"level":"error","msg":"x"}', "error"],
    ["Traceback (most recent call last):", "error"],
    ["DEBUG x=1", "debug"],
    ["no error was found", "info"],
    ["charging", "info"],
    ["", "info"],
  ];
  for (const [text, level] of cases) assert.equal(levelOf(text), level, text);
});

test("less grave lines are left out, folded steps have no lines, and matches are rows of lines", () => {
  const events = [done(30, ["charging", "ERROR no price", "done"])];
  const kinds = (more = {}) => rows(events, more).map(({ is }) => is);
  assert.deepEqual(kinds(), ["step", "line", "line", "line"]);
  assert.deepEqual(kinds({ least: "error" }), ["step", "line"]);
  assert.deepEqual(kinds({ folded: new Set(["100/work"]) }), ["step"]);
  assert.deepEqual(matchesOf(rows(events), "PRICE"), [2]);
  assert.deepEqual(matchesOf(rows(events), " "), []);
  assert.match(logText(rows(events)), /^== work\n {2}2026-11-20T06:00:00\.030Z charging\n/);
});
