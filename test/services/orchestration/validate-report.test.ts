import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReportedEvent } from "../../../src/schema/api/event-input.ts";
import { completeReport, judgeReport } from "../../../src/services/orchestration/validate-report.ts";
import { type BegunExecution, beginLive } from "../../support/service/live.ts";

const PLAIN = "workflow: [{ step: a, tool: { kind: noop } }]";
const PIPELINE = "workflow: [{ step: a, tool: [{ name: one, kind: noop }, { name: two, kind: noop }] }]";
const LOCAL_LOOP = "workflow: [{ step: a, loop: { in: 3, spec: { policy: { exec: local } } }, tool: { kind: noop } }]";

const at = 0;

/** Events of the only command of an execution. */
function reports({ commands }: BegunExecution) {
  const ref = { at, command_id: commands[0]?.command_id ?? "", attempt: 1, step: "" };
  return {
    done: (task: string, more: object = {}): ReportedEvent => {
      const about = { task, task_run_id: "r", status: "ok", run: 1, final: true, result: { value: 1 }, duration_ms: 1 };
      return { type: "task.done", ...ref, ...about, ...more } as ReportedEvent;
    },
    completed: (more: object = {}): ReportedEvent => ({ type: "command.completed", ...ref, ...more }),
    iteration: (iteration: number, tasks: string[] = ["a"]): ReportedEvent => {
      return { type: "loop.iteration.completed", ...ref, iteration, tasks };
    },
  };
}

/** The reasons by index. */
function judge(begun: BegunExecution, ...events: ReportedEvent[]): Record<number, string> {
  const sent = events.map((event) => ({ executionId: "7", event }));
  const refusals = judgeReport(sent, (id) => (id === "7" ? begun.live : undefined));
  return Object.fromEntries(refusals.map(({ index, reason }) => [index, reason]));
}

test("each event is judged in the state after the earlier events of the batch", () => {
  const begun = beginLive(PLAIN);
  const { done, completed } = reports(begun);
  assert.deepEqual(judge(begun, done("a"), completed({ tasks: ["a"] })), {});
  assert.deepEqual(judge(begun, completed({ tasks: ["a"] })), { 0: "early" });
  // Nothing may follow a command's end.
  assert.deepEqual(judge(begun, done("a"), completed({ tasks: ["a"] }), done("a")), { 2: "unknown" });
});

test("an event of another claim, another command or another execution is refused with its reason", () => {
  const begun = beginLive(PLAIN);
  const { done } = reports(begun);
  assert.deepEqual(judge(begun, done("a", { attempt: 2 }), done("a"), done("a", { command_id: "999" })), {
    0: "stale",
    2: "unknown",
  });
  assert.equal(judgeReport([{ executionId: "8", event: done("a") }], () => undefined)[0]?.reason, "unknown");
  begun.fold({ type: "execution.cancelled", at, reason: "enough" });
  assert.deepEqual(judge(begun, done("a")), { 0: "late" });
});

test("an event counts only with both the worker and the attempt of the claim", () => {
  const begun = beginLive(PLAIN);
  const { done } = reports(begun);
  const [own, other] = [{ worker: "w1" }, { worker: "w2" }];
  assert.deepEqual(judge(begun, done("a", other), done("a", { worker: "W1" }), done("a", own)), {
    0: "foreign",
    1: "foreign",
  });
  // Every worker that lost the command gets this answer.
  assert.deepEqual(judge(begun, done("a", { worker: "w2", attempt: 2 })), { 0: "stale" });
});

test("names that every object inherits are not commands", () => {
  const begun = beginLive(PLAIN);
  const { done } = reports(begun);
  for (const command_id of ["__proto__", "constructor", "toString"]) {
    assert.deepEqual(judge(begun, done("a", { command_id })), { 0: "unknown" });
  }
});

test("iterations that had ended under an earlier claim are no reason to refuse the rest", () => {
  const begun = beginLive(LOCAL_LOOP);
  const { done, iteration, completed } = reports(begun);
  for (const event of [done("a", { iteration: 0 }), iteration(0)]) begun.fold(event);
  const { command_id = "" } = begun.commands[0] ?? {};
  begun.fold({ type: "command.claimed", at, command_id, step: "a", attempt: 2, worker: "w2" });
  const again = [0, 1, 2].flatMap((index) => [done("a", { iteration: index }), iteration(index)]);
  const later = [...again, completed({ iterations: 3 })].map((event) => ({ ...event, attempt: 2 }));
  assert.deepEqual(judge(begun, ...later), {});
  // The one that had ended counts once.
  const short = later.filter((event) => !("iteration" in event) || event.iteration !== 2);
  assert.deepEqual(judge(begun, ...short), { 4: "early" });
});

test("iterations that the command does not have are refused, however often they are reported", () => {
  const begun = beginLive(LOCAL_LOOP);
  const { done, iteration, completed } = reports(begun);
  assert.deepEqual(judge(begun, done("a", { iteration: 3 }), done("a")), { 0: "unknown", 1: "unknown" });
  const twice = [done("a", { iteration: 0 }), iteration(0), iteration(0), completed({ iterations: 2 })];
  assert.deepEqual(judge(begun, ...twice), { 3: "early" });
});

test("fields that a short form leaves out are filled in, from the state at that moment", () => {
  const begun = beginLive(PIPELINE);
  const { done, completed } = reports(begun);
  const short = completed();
  assert.deepEqual(completeReport(begun.live, short), { ...short, step: "a", tasks: [], pipeline: true });
  begun.fold(done("one"));
  begun.fold(done("two"));
  // Not kept in the event: a first try on an older state must not decide for the second.
  assert.deepEqual(completeReport(begun.live, short), { ...short, step: "a", tasks: ["one", "two"], pipeline: true });
});

test("a step that the sender made up is replaced", () => {
  const begun = beginLive(PLAIN);
  const { completed } = reports(begun);
  assert.equal(completeReport(begun.live, completed({ step: "elsewhere" })).step, "a");
});
