import { test } from "node:test";
import { given } from "../support/given.ts";
import { claimed, done, failed, raw } from "../support/reports.ts";

// Language document, sections 6 and 12: what a failed iteration means.

function loop(count: number, spec: string, next = "{ arcs: [] }"): string {
  return `
workflow:
  - { step: each, loop: { in: ${count}, spec: ${spec} }, next: ${next} }
  - { step: good }
  - { step: bad }
`;
}

test("a sequential loop starts no further iteration after a failure", () => {
  given(loop(3, "{}"))
    .when(done("each", "x"), failed("each"))
    .then(
      "command.issued each[1]",
      "loop.done each 1/3",
      "step.failed each (no)",
      "workflow.failed unknown",
      "playbook.failed unknown",
    )
    .is({
      status: "FAILED",
      error: /1 of 3 iterations of step 'each' failed; the first: boom/,
      results: {
        each: {
          results: [
            "x",
            { status: "error", error: { kind: "unknown", code: "BOOM", message: "boom", retryable: false } },
          ],
          stats: { total: 3, success: 1, failed: 1 },
          iterations: 2,
          status: "failed",
        },
      },
    });
});

test("a parallel loop runs all iterations and then fails", () => {
  given(loop(3, "{ mode: parallel, max_in_flight: 1 }"))
    .when(failed("each", "first"), done("each"), failed("each", "second"))
    .is({ status: "FAILED", error: /2 of 3 iterations of step 'each' failed; the first: first/ });
});

test("on_error: continue runs a sequential loop to its end", () => {
  given(loop(3, "{ on_error: continue }"))
    .when(failed("each"))
    .then("command.issued each[1]")
    .when(done("each"), done("each"))
    .is({
      status: "FAILED",
      error: /1 of 3 .* failed \(on_error: continue runs them all; .*tolerate: 100%.* complete\); the first/,
    });
});

test("on_error: stop lets a parallel loop start no further iteration, and waits for those that run", () => {
  given(loop(5, "{ mode: parallel, max_in_flight: 2, on_error: stop }"))
    .when(failed("each", "boom", { iteration: 0 }))
    .then()
    .is({ status: "RUNNING", open: ["each"] })
    .when(done("each"))
    .then("loop.done each 1/5", "step.failed each (no)", "workflow.failed unknown", "playbook.failed unknown");
});

test("tolerate n completes the loop while no more than n fail", () => {
  given(loop(3, "{ on_error: { tolerate: 1 } }"))
    .when(failed("each"), done("each"), done("each"))
    .is({ status: "COMPLETED", steps: { each: "COMPLETED" } });
});

test("tolerate n stops the loop at the failure that is one too many", () => {
  given(loop(4, "{ on_error: { tolerate: 1 } }"))
    .when(failed("each"), failed("each"))
    .then(
      "command.issued each[1]",
      "loop.done each 0/4",
      "step.failed each (no)",
      "workflow.failed unknown",
      "playbook.failed unknown",
    );
});

test("tolerate % counts in the whole loop", () => {
  given(loop(4, "{ mode: parallel, on_error: { tolerate: 50% } }"))
    .when(failed("each"), failed("each"), done("each"), done("each"))
    .is({ status: "COMPLETED" });
  given(loop(4, "{ mode: parallel, on_error: { tolerate: 25% } }"))
    .when(failed("each"), failed("each"), done("each"), done("each"))
    .is({ status: "FAILED" });
});

test("tolerate as a fraction is a share", () => {
  given(loop(4, "{ on_error: { tolerate: 0.25 } }"))
    .when(failed("each"), done("each"), done("each"), done("each"))
    .is({ status: "COMPLETED" });
});

const BOTH = `{ arcs: [{ step: bad, when: "event.name == 'step.failed'" }, { step: good, when: "event.name == 'loop.done'" }] }`;
const DONE_ONLY = `{ arcs: [{ step: good, when: "event.name == 'loop.done'" }] }`;

test("a failure name takes the failure of a loop", () => {
  given(loop(1, "{}", BOTH))
    .when(failed("each"))
    .then("loop.done each 0/1", "step.failed each (yes) -> bad", "step.skipped good (unreached)", "command.issued bad")
    .when(done("bad"))
    .is({ status: "COMPLETED", steps: { each: "FAILED" } });
});

test("an arc that names loop.done alone lets later steps run, the run still ends FAILED", () => {
  given(loop(2, "{ mode: parallel }", DONE_ONLY))
    .when(failed("each"), done("each"))
    .then("loop.done each 1/2", "step.failed each (loop.done) -> good", "command.issued good")
    .is({ status: "RUNNING" })
    .when(done("good"))
    .then("step.completed good", "workflow.failed unknown", "playbook.failed unknown")
    .is({ status: "FAILED", error: /1 of 2 iterations/, steps: { good: "COMPLETED" } });
});

test("the final step runs before such a run ends FAILED", () => {
  given(`executor: { spec: { final_step: bad } }\n${loop(1, "{}", DONE_ONLY)}`)
    .when(failed("each"), done("good"))
    .is({ open: ["bad"] })
    .when(done("bad"))
    .is({ status: "FAILED", steps: { bad: "COMPLETED" } });
});

test("an arc without a condition is not tried when the loop failed", () => {
  given(loop(1, "{}", "good"))
    .when(failed("each"))
    .is({ status: "FAILED", steps: { good: "PENDING" } });
});

test("a loop command that fails as a whole fails the iterations it had not reported", () => {
  given(loop(3, "{ policy: { exec: local } }"))
    .when(done("each", "x", { iteration: 0 }))
    .when(({ state, now }) => [
      {
        type: "command.failed",
        at: now,
        command_id: Object.keys(state.commands)[0] ?? "",
        attempt: 1,
        step: "each",
        error: { kind: "unknown", code: "INTERNAL", message: "it broke", retryable: false },
      },
    ])
    .is({ status: "FAILED", error: /2 of 3 iterations of step 'each' failed; the first: it broke/ });
});

test("a loop command that ends early without a failure leaves the loop's work incomplete", () => {
  // As when the step's time was over between two iterations, or a second attempt stopped where the first had not.
  given(loop(3, "{ policy: { exec: local } }"))
    .when(done("each", "x", { iteration: 0 }))
    .when(({ state, now }) => [
      {
        type: "command.completed",
        at: now,
        command_id: Object.keys(state.commands)[0] ?? "",
        attempt: 1,
        step: "each",
        iterations: 1,
      },
    ])
    .is({ status: "FAILED", error: /2 of 3 iterations of step 'each' were not run/ });
});

test("a failure is counted once, however often it is reported", () => {
  given(loop(2, "{ mode: parallel, policy: { exec: local } }"))
    .when(claimed("each"), failed("each", "boom", { iteration: 1 }))
    .refuses("unknown", ({ state, now }) => [
      {
        type: "loop.iteration.failed",
        at: now,
        command_id: Object.keys(state.commands)[0] ?? "",
        attempt: 1,
        step: "each",
        iteration: 1,
        tasks: [],
        error: { kind: "unknown", code: "BOOM", message: "boom", retryable: false },
      },
    ])
    .when(raw(), done("each"))
    .is({ status: "FAILED", error: /1 of 2/ });
});
