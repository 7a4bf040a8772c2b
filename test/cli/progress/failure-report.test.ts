import assert from "node:assert/strict";
import { test } from "node:test";
import { failureLines, type RunLocation, serverLocation } from "../../../src/cli/progress/failure-report.ts";
import { PLAIN } from "../../../src/cli/terminal/style.ts";
import { compileProgram } from "../../../src/engine/program/program.ts";
import { loadPlaybook } from "../../../src/language/load/load.ts";
import type { TaskError } from "../../../src/schema/words/outcome.ts";
import { BEGIN, begun, watchedRun } from "../watched-run.ts";

const TEXT = `
apiVersion: test/v2
kind: Playbook
metadata: { name: x }
workflow:
  - step: a
    tool: { kind: noop, name: work }
`;

/** What is printed of a run of {@link TEXT} that failed with this error. */
function linesOf(error: Pick<TaskError, "kind" | "code"> & Partial<TaskError>, where?: RunLocation): string[] {
  const run = watchedRun();
  const whole: TaskError = { message: "it broke", retryable: false, step: "a", task: "work", attempt: 2, ...error };
  run.happen("1", begun("1", "x", 0), { type: "playbook.failed", at: BEGIN + 5, error: whole });
  const { playbook } = loadPlaybook(TEXT, "x.yaml");
  const root = run.model.root();
  assert.ok(playbook !== undefined && root !== undefined);
  return failureLines(root, { program: compileProgram(playbook), file: "x.yaml", warnings: [] }, PLAIN, where);
}

test("a failure names step, task, line and attempt, the cause, and what to do next", () => {
  assert.deepEqual(linesOf({ kind: "timeout", code: "TIMEOUT" }), [
    "  step    a at x.yaml:6",
    "  task    work (noop) at x.yaml:7, attempt 2",
    "  cause   it broke (timeout, TIMEOUT)",
    "  next    raise `timeout` of the task or the step, or make the work smaller",
  ]);
});

test("a failure on a server is followed by how to go on from it", () => {
  const [, , , , then, ...rest] = linesOf({ kind: "timeout", code: "TIMEOUT" }, serverLocation("7211"));
  assert.equal(then, "  then    'flow rerun 7211' runs what failed again and keeps what completed");
  assert.deepEqual(rest, []);
});

test("a code that says more than its kind has the hint of the code", () => {
  const [, , , next] = linesOf({
    kind: "configuration",
    code: "FILE_UNREADABLE",
    message: "Cannot read the credentials file c.json",
  });
  assert.match(next ?? "", /check the credential/);
});

test("an error code named like a method of the host language is printed like any other", () => {
  const [, , cause, next] = linesOf({ kind: "client_error", code: "constructor" });
  assert.equal(cause, "  cause   it broke (client_error, constructor)");
  assert.match(next ?? "", /--verbose shows every task/);
});
