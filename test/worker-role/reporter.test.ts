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
    freedBy: (_, { isEnd }) => (isEnd ? 1 : 0),
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

/** A reporter for `count` commands that run, a server whose answers wait, and timers that the test ends. */
function running(count: number) {
  const requests: string[][] = [];
  const answers: (() => void)[] = [];
  const timers = new Set<{ ms: number; action: () => void }>();
  const report = ({ events }: ReportRequest) => {
    requests.push(events.map((json) => (JSON.parse(json) as { command_id: string }).command_id));
    return new Promise<{ status: "accepted"; duplicate: false; commands: [] }>((resolve) =>
      answers.push(() => resolve({ status: "accepted", duplicate: false, commands: [] })),
    );
  };
  const slots = createSlots(count);
  const reporter = createReporter<{ work: ClaimedWork }>({
    server: { report },
    clock: {
      ...systemClock,
      timer(ms, action) {
        const timer = { ms, action };
        timers.add(timer);
        return () => timers.delete(timer);
      },
    },
    random: () => 0,
    slots,
    freedBy: (_, { isEnd }) => (isEnd ? 1 : 0),
    newKey: () => "key",
    acknowledged: () => slots.giveBack(),
    start: () => undefined,
    answerLost: () => undefined,
    emit: () => undefined,
    giveUp: () => undefined,
  });
  const claims = Array.from({ length: count }, (_, index) => {
    slots.take();
    const work = { command: commandOf(index + 1) as unknown as ClaimedWork["command"], attempt: 1 };
    return reporter.open({ work });
  });
  return {
    requests,
    timers,
    /** Ends commands, one in each turn of the loop. */
    async end(...ids: number[]) {
      for (const id of ids) {
        await claims[id - 1]?.report([{ ...completed, command_id: String(id) } as FlowEvent]);
        await turn();
      }
    },
    async answer() {
      answers.shift()?.();
      await turn();
    },
    async ringAll() {
      for (const timer of [...timers]) {
        timers.delete(timer);
        timer.action();
      }
      await turn();
    },
  };
}

const turn = () => new Promise<void>((resolve) => setImmediate(() => setImmediate(resolve)));

test("while a report is under way, the next one waits for the ends of half of what runs", async () => {
  const { requests, end } = running(16);
  await end(1);
  assert.deepEqual(requests, [["1"]], "nothing is under way: at once");
  await end(2, 3, 4, 5, 6, 7, 8);
  assert.deepEqual(requests, [["1"]], "7 of 15");
  await end(9);
  assert.deepEqual(requests, [["1"], ["2", "3", "4", "5", "6", "7", "8", "9"]]);
  await end(10, 11, 12, 13, 14, 15, 16);
  assert.equal(requests.length, 2, "two are under way, and no third");
});

test("an answer sends what waits for company, and so do 5 ms", async () => {
  const { requests, timers, end, answer, ringAll } = running(16);
  await end(1, 2);
  assert.deepEqual(
    [...timers].map(({ ms }) => ms),
    [5],
  );
  await answer();
  assert.deepEqual(requests, [["1"], ["2"]]);
  assert.equal(timers.size, 0, "its timer is cancelled");
  await end(3, 4);
  assert.deepEqual(requests.length, 2);
  await ringAll();
  assert.deepEqual(requests, [["1"], ["2"], ["3", "4"]]);
  await ringAll();
  assert.equal(requests.length, 3);
});

test("of two commands neither waits for the other, and commands that end together go with the first request", async () => {
  const two = running(2);
  await two.end(1, 2);
  assert.deepEqual(two.requests, [["1"], ["2"]]);
  const all = running(8);
  await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map((id) => all.end(id)));
  assert.deepEqual(all.requests, [["1", "2", "3", "4", "5", "6", "7", "8"]]);
});
