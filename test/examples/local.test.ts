import assert from "node:assert/strict";
import { test } from "node:test";
import { runExample, statuses } from "./run-flow.ts";

/* The examples that need no service: each really run, python and shell included. */

test("hello greets with the inputs of its run", async () => {
  const report = await runExample("hello", { name: "ada", evening: true });
  assert.equal(report.status, "COMPLETED", report.stderr);
  assert.deepEqual(report.result, { message: "Good evening, Ada!", letters: 18 });
  assert.deepEqual(
    report.steps.map((step) => step.name),
    ["start", "greet", "end"],
  );
});

test("python_stats describes numbers, and what it prints stays out of the result", async () => {
  const report = await runExample("python_stats");
  assert.deepEqual(report.result, { described: true, summary: { count: 5, mean: 14.4, median: 9, largest: 41 } });
  assert.match(report.stderr, /describing 5 values/);
});

test("python_stats takes an arc for the exception, which names the document's line", async () => {
  const report = await runExample("python_stats", { values: [] });
  assert.equal(report.status, "COMPLETED");
  const { problem } = report.result as { problem: string };
  assert.match(problem, /^ValueError: there are no values to describe \(.*python_stats\.yaml:30, in main\)$/);
  assert.deepEqual(statuses(report), { describe: "FAILED", explain: "COMPLETED", end: "SKIPPED" });
});

test("python_stats fails for an exception that no arc takes", async () => {
  const report = await runExample("python_stats", { values: ["one"] });
  assert.equal(report.status, "FAILED");
  assert.equal(report.error?.code, "TypeError");
  assert.equal(report.error?.step, "describe");
});

test("route_order takes one of three ways and joins behind them", async () => {
  const report = await runExample("route_order", { customer: { tier: "gold" } });
  assert.deepEqual(report.result, { order: "A-1", route: "standard", total: 112 });
  assert.deepEqual(statuses(report), {
    start: "COMPLETED",
    standard: "COMPLETED",
    manual_review: "SKIPPED",
    express: "SKIPPED",
    discount: "COMPLETED",
    end: "COMPLETED",
  });
});

test("nested_loops runs a sub-playbook for each region, which sees the region of its caller", async () => {
  const report = await runExample("nested_loops");
  const { takings, regions } = report.result as { takings: number; regions: { shops: string[] }[] };
  assert.equal(takings, 460.5);
  assert.deepEqual(
    regions.map((region) => region.shops),
    [["north/Aarhus", "north/Bergen"], ["south/Cadiz"], []],
  );
  assert.deepEqual(report.steps[0]?.iterations, { total: 3, done: 3, failed: 0 });
});

test("shell_artifact reads back a result that was stored by reference", async () => {
  // About 280 KB: beyond the default limit too.
  const report = await runExample("shell_artifact", { numbers: 20_000 });
  assert.equal(report.status, "COMPLETED", report.stderr);
  const { stored_bytes: bytes, ...rest } = report.result as { stored_bytes: number };
  assert.deepEqual(rest, { numbers: 20_000, sum: 200_010_000, code: 0, stored: true });
  assert.ok(bytes > 200_000, `${bytes} bytes`);
});
