import assert from "node:assert/strict";
import { test } from "node:test";
import type { ClaimedWork, ReportAnswer, ReportRequest } from "../../src/ports/work-server.ts";
import type { Command } from "../../src/schema/words/command.ts";
import type { FlowEvent } from "../../src/schema/words/event.ts";
import { createSteppedClock } from "../../src/testing/stepped-clock.ts";
import { createReporter } from "../../src/worker/reporting/reporter.ts";
import { createSlots } from "../../src/worker/slots.ts";
import type { WorkerEvent } from "../../src/worker/worker-event.ts";

// What a worker does when the server fails over its reports, each time, by a fault of its own.

interface Claim {
  readonly work: ClaimedWork;
}

/** A worker's reporter before a server that fails over what `isPoison` says. */
function setup(isPoison: (events: string) => boolean) {
  const clock = createSteppedClock(0);
  const tried: string[] = [];
  const taken: string[] = [];
  const told: WorkerEvent[] = [];
  const gaveUp: string[] = [];
  let ended = 0;
  const server = {
    report({ events }: ReportRequest): Promise<ReportAnswer> {
      const text = events.join(",");
      tried.push(text);
      if (isPoison(text)) return Promise.resolve({ status: "unavailable", message: "a fault", isFault: true });
      taken.push(text);
      return Promise.resolve({ status: "accepted", duplicate: false, commands: [] });
    },
  };
  const reporter = createReporter<Claim>({
    server,
    clock,
    random: () => 0,
    slots: createSlots(10),
    freedBy: (_, { isEnd }) => (isEnd ? 1 : 0),
    newKey: () => String(tried.length),
    acknowledged: () => {
      ended += 1;
    },
    start: () => undefined,
    answerLost: () => undefined,
    emit: (event) => void told.push(event),
    giveUp: (claim) => void gaveUp.push(claim.work.command.command_id),
  });
  const end = (id: string): Promise<void> => {
    const command = { command_id: id, execution_id: "9", step: "s" } as Command;
    const event: FlowEvent = { type: "command.completed", at: 0, command_id: id, attempt: 1, step: "s", tasks: [] };
    return reporter.open({ work: { command, attempt: 1 } }).report([event]);
  };
  const settled = async () => {
    for (let idle = 0; idle < 50; idle += 1) {
      await new Promise(setImmediate);
      if (await clock.step()) idle = 0;
    }
  };
  return { end, settled, clock, tried, taken, told, gaveUp, ended: () => ended };
}

const isEnd = (id: string) => (text: string) =>
  text.includes(`"command_id":"${id}"`) && text.includes("command.completed");

test("a command whose end the server fails over again and again is failed instead, and says why", async () => {
  const worker = setup(isEnd("1"));
  await worker.end("1");
  await worker.settled();
  assert.equal(worker.tried.length, 12, "eleven tries, and the failure");
  const [failure] = worker.taken.map((text) => JSON.parse(text));
  assert.deepEqual([failure.event_type, failure.error.code], ["command.failed", "INTERNAL"]);
  assert.match(failure.error.message, /could not take the report of this command: a fault/);
  assert.deepEqual([worker.gaveUp, worker.ended()], [["1"], 1]);
  assert.ok(worker.clock.now() > 20_000 && worker.clock.now() < 60_000, `after ${worker.clock.now()} ms`);
});

test("the commands of the same request are not held up by the one that the server fails over", async () => {
  const worker = setup(isEnd("2"));
  await Promise.all(["1", "2", "3"].map((id) => worker.end(id)));
  await worker.settled();
  const order = worker.taken.map((text) => `${JSON.parse(text).command_id} ${JSON.parse(text).event_type}`);
  assert.deepEqual(order, ["1 command.completed", "3 command.completed", "2 command.failed"]);
});

test("a command whose failure the server cannot process either is given up and logged, and the worker goes on", async () => {
  const worker = setup((text) => text.includes('"command_id":"1"'));
  await worker.end("1");
  await worker.settled();
  assert.equal(worker.tried.length, 22);
  assert.equal(worker.told.filter(({ type }) => type === "report.invalid").length, 2);
  await worker.end("5");
  await worker.settled();
  assert.equal(worker.taken.length, 1);
});

test("a server that is only away is asked for as long as it takes", async () => {
  let tries = 0;
  const worker = setup((text) => {
    tries += 1;
    return tries <= 10 && text !== "";
  });
  await worker.end("1");
  await worker.settled();
  assert.equal(JSON.parse(worker.taken[0] ?? "{}").event_type, "command.completed");
});
