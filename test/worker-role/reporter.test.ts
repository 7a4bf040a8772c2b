import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../src/adapters/system-clock.ts";
import type { ClaimedWork, ReportRequest } from "../../src/ports/work-server.ts";
import type { FlowEvent } from "../../src/schema/words/event.ts";
import { createReporter } from "../../src/worker/reporting/reporter.ts";
import { createSlots } from "../../src/worker/slots.ts";
import { commandOf } from "./support/fake-server.ts";

const REF = { command_id: "1", attempt: 1, step: "only" };
const started: FlowEvent = { type: "command.started", at: 1, ...REF };
const completed: FlowEvent = { type: "command.completed", at: 2, ...REF, tasks: [] };

/** A reporter for one claim, and the types of events of each request that it makes. */
function setup() {
  const requests: string[][] = [];
  let acknowledge = () => {};
  const acknowledged = new Promise<void>((resolve) => {
    acknowledge = resolve;
  });
  const report = ({ events }: ReportRequest) => {
    requests.push(events.map((json) => (JSON.parse(json) as { event_type: string }).event_type));
    return Promise.resolve({ status: "accepted" as const, duplicate: false, commands: [] });
  };
  const reporter = createReporter<{ work: ClaimedWork }>({
    server: { report },
    clock: systemClock,
    random: () => 0,
    slots: createSlots(1),
    newKey: () => "key",
    acknowledged: () => acknowledge(),
    start: () => undefined,
    answerLost: () => undefined,
    emit: () => undefined,
    giveUp: () => undefined,
  });
  const work = { command: commandOf(1) as unknown as ClaimedWork["command"], attempt: 1 };
  return { requests, acknowledged, ...reporter.open({ work }) };
}

test("events of a command before its end are sent before the end", async () => {
  const { report, requests, acknowledged } = setup();
  await report([started]);
  await report([completed]);
  await acknowledged;
  assert.deepEqual(requests.flat(), ["command.started", "command.completed"]);
});

test("nothing is sent after the end of a command: the server would refuse the end with it", async () => {
  const { report, requests, acknowledged } = setup();
  await Promise.all([report([completed]), report([started])]);
  await acknowledged;
  await report([started]);
  assert.deepEqual(requests, [["command.completed"]]);
});
