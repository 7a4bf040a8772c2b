import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../src/adapters/system-clock.ts";
import type { ClaimedWork, ReportAnswer, ReportRequest } from "../../src/ports/work-server.ts";
import type { Command } from "../../src/schema/words/command.ts";
import type { FlowEvent } from "../../src/schema/words/event.ts";
import { createReporter } from "../../src/worker/reporting/reporter.ts";
import { createSlots } from "../../src/worker/slots.ts";

const command: Command = {
  command_id: "1",
  execution_id: "2",
  catalog_id: "3",
  step: "only",
  step_run_id: "1-0",
  step_started_at: 0,
  context: { workload: {}, vars: {}, steps: {}, input: {} },
};
const MEBIBYTE = 1_048_576;

/** A task's end of about `bytes`. */
function done(bytes: number): FlowEvent {
  const event = {
    type: "task.done",
    at: 0,
    command_id: "1",
    attempt: 1,
    step: "only",
    task: "t",
    task_run_id: "1-0-0",
  } as const;
  return { ...event, status: "ok", run: 1, final: true, result: { value: "x".repeat(bytes) }, bytes, duration_ms: 0 };
}

test("a reporter that is more than eight MiB ahead of the server has to wait", async () => {
  const requests: { request: ReportRequest; answer: (answer: ReportAnswer) => void }[] = [];
  let sent = () => {};
  const reporter = createReporter<{ work: ClaimedWork }>({
    server: {
      report: (request) =>
        new Promise((resolve) => {
          requests.push({ request, answer: resolve });
          sent();
        }),
    },
    clock: systemClock,
    random: Math.random,
    slots: createSlots(1),
    freedBy: (_, { isEnd }) => (isEnd ? 1 : 0),
    newKey: () => "key",
    acknowledged: () => undefined,
    start: () => undefined,
    answerLost: () => undefined,
    giveUp: () => undefined,
    emit: (event) => assert.fail(JSON.stringify(event)),
  });
  const { report } = reporter.open({ work: { command, attempt: 1 } });
  for (let count = 0; count < 8; count += 1) await report([done(MEBIBYTE - 1_000)]);
  let isWaiting = true;
  const ninth = report([done(MEBIBYTE)]).then(() => {
    isWaiting = false;
  });
  if (requests.length === 0) {
    await new Promise<void>((resolve) => {
      sent = resolve;
    });
  }
  await new Promise(setImmediate);
  assert.equal(isWaiting, true);
  assert.equal(requests.length, 1, "the next request waits for the answer to this one");
  assert.equal(requests[0]?.request.events.length, 1);
  requests[0]?.answer({ status: "accepted", duplicate: false, commands: [] });
  await ninth;
  reporter.stop();
});
