import assert from "node:assert/strict";
import { test } from "node:test";
import { FlowError } from "../../../src/schema/words/errors.ts";
import type { OrchestratorLimits } from "../../../src/services/orchestration/orchestrator.ts";
import type { ClaimedCommand } from "../../../src/services/orchestration/rounds/types.ts";
import { createSteppedClock } from "../../../src/testing/stepped-clock.ts";
import { createMemoryStore, type MemoryStore } from "../../support/engine/memory-store.ts";
import { openOrchestrator } from "../../support/engine/orchestrator.ts";

// More requests than are written: what waits is answered late, what is too much is refused at once.

const ONE_STEP = `apiVersion: flow/v2
kind: Playbook
metadata: { name: one, path: one }
workflow:
  - { step: one, tool: { kind: noop } }
`;
const FAN_OUT = `apiVersion: flow/v2
kind: Playbook
metadata: { name: fan, path: fan }
workflow:
  - { step: each, loop: { in: 5, spec: { mode: parallel, max_in_flight: 5 } }, tool: { kind: noop } }
`;
const LIMITS: OrchestratorLimits = {
  leaseMs: 120_000,
  lostClaims: 3,
  ackMs: 10_000,
  queueMax: 4,
  processingMs: 15_000,
  processors: 1,
};
/** With one processor two rounds are written at a time. */
const ROUNDS = 2;

/** A service whose first two writes wait until they are let go, on a clock of its own. */
function setup(limits: Partial<OrchestratorLimits> = {}) {
  const clock = createSteppedClock(1_700_000_000_000);
  const store = createMemoryStore(clock.now);
  const opened = openOrchestrator({ clock, limits: { ...LIMITS, ...limits } }, store);
  const { orchestrator, start } = opened;
  const claimAll = async (limit: number) => {
    const claim = orchestrator.claim({ worker: "w", limit, kinds: undefined, labels: {}, waitMs: 1_000 });
    const claimed = await claim;
    assert.equal(claimed.length, limit);
    return claimed;
  };
  return {
    ...opened,
    clock,
    claimAll,
    /** Sends the end of a command; the code of the refusal, or `taken`. */
    report: (command: ClaimedCommand | undefined, more: object = {}) =>
      outcome(orchestrator.report(endOf(command ?? assert.fail(), more))),
    /** Commands of that many executions, claimed. */
    async commands(count: number) {
      for (let index = 0; index < count; index += 1) await start(ONE_STEP);
      return await claimAll(count);
    },
    /** Both rounds are being written, with the reports of these two. */
    async fill([first, second]: readonly ClaimedCommand[]) {
      assert.ok(first !== undefined && second !== undefined);
      const writes = holdWrites(store, ROUNDS);
      const one = outcome(orchestrator.report(endOf(first)));
      await writes.held(1);
      const two = outcome(orchestrator.report(endOf(second)));
      await writes.held(2);
      return { release: writes.release, answers: [one, two] };
    },
  };
}

/** The next `count` writes wait for `release`; `held` resolves when so many of them wait. */
function holdWrites(store: MemoryStore, count: number) {
  const { flush } = store;
  const waiting: (() => void)[] = [];
  const listeners: { count: number; resolve(): void }[] = [];
  let begun = 0;
  store.flush = async (changes) => {
    begun += 1;
    if (begun <= count) {
      const released = new Promise<void>((resolve) => void waiting.push(resolve));
      for (const { count: wanted, resolve } of listeners) if (begun >= wanted) resolve();
      await released;
    }
    return await flush(changes);
  };
  return {
    held: (wanted: number) =>
      new Promise<void>((resolve) => {
        if (begun >= wanted) resolve();
        else listeners.push({ count: wanted, resolve });
      }),
    release() {
      for (const go of waiting) go();
    },
  };
}

/** What a worker reports of a command that went well. */
function endOf({ command, attempt }: ClaimedCommand, more: object = {}) {
  const { command_id, step, execution_id } = command;
  const event = { type: "command.completed" as const, at: 1, command_id, attempt, step, tasks: [] };
  const key = `end-${command_id}`;
  return { caller: "w", idempotencyKey: key, bodySha256: "a", events: [{ executionId: execution_id, event }], ...more };
}

function codeOf(error: unknown): string {
  return error instanceof FlowError ? error.code : String(error);
}

/** The code of its refusal, or `taken`. */
async function outcome(answer: Promise<unknown>): Promise<string> {
  return await answer.then(() => "taken", codeOf);
}

/** Whether it is answered before all that can happen without the clock or a write has happened. */
async function atOnce(answer: Promise<unknown>): Promise<unknown> {
  const waits = new Promise<string>((resolve) => setImmediate(() => setImmediate(() => resolve("waits"))));
  return await Promise.race([answer, waits]);
}

test("the queue is full: one report less waits and is answered, one more is refused at once, and taken later", async () => {
  const { orchestrator, commands, fill, start, report } = setup();
  const claimed = await commands(7);
  const { release, answers } = await fill(claimed);
  for (const [index, command] of claimed.slice(2, 6).entries()) {
    const answer = report(command);
    assert.equal(await atOnce(answer), "waits", `place ${index + 1} of 4`);
    answers.push(answer);
  }
  assert.equal(await atOnce(report(claimed[6])), "queue_unavailable");
  assert.equal(await atOnce(outcome(start(ONE_STEP))), "queue_unavailable");
  assert.equal(orchestrator.queueDepth(), 4);
  release();
  assert.deepEqual(await Promise.all(answers), Array(6).fill("taken"));
  // What follows from them waits in the same queue.
  while (orchestrator.queueDepth() > 0) await new Promise(setImmediate);
  assert.equal(await report(claimed[6]), "taken");
  await orchestrator.close();
});

test("what waits is answered however late, up to the time limit; beyond it, it is refused and not done", async () => {
  for (const [ms, expected] of [
    [9_950, "taken"],
    [10_050, "ack_timeout"],
  ] as const) {
    // A report that was given up keeps its place until a round comes to it.
    const { orchestrator, commands, fill, clock, store, report } = setup({ queueMax: 8 });
    const claimed = await commands(3);
    const { release } = await fill(claimed);
    const third = claimed[2] ?? assert.fail();
    const answer = report(third, { claim: claimOf("w") });
    await clock.advance(ms);
    release();
    assert.equal(await answer, expected);
    const hasEnded = () => store.executions.get(third.command.execution_id)?.endedAt !== null;
    assert.equal(hasEnded(), expected === "taken");
    // Its sender asks again, under the same key.
    const { duplicate } = await orchestrator.report(endOf(third, { claim: claimOf("w") }));
    assert.deepEqual([duplicate, hasEnded()], [expected === "taken", true]);
    await orchestrator.close();
  }
});

test("a report is refused while it is written: sent again under its key, it is there once", async () => {
  const { orchestrator, commands, fill, clock, store } = setup();
  const claimed = await commands(2);
  const { release, answers } = await fill(claimed);
  await clock.advance(10_050);
  assert.deepEqual(await Promise.all(answers), ["ack_timeout", "ack_timeout"]);
  const again = claimed.map((command) => orchestrator.report(endOf(command)));
  release();
  assert.deepEqual(
    (await Promise.all(again)).map(({ duplicate }) => duplicate),
    [true, true],
  );
  assert.equal(store.batches.size, 2);
  await orchestrator.close();
});

test("a start that waits too long is refused and never begins; one that is being written may have begun, and is found by its key", async () => {
  const { orchestrator, commands, fill, clock, store, start } = setup();
  const { release } = await fill(await commands(2));
  const before = store.executions.size;
  const waiting = outcome(start(ONE_STEP));
  await clock.advance(10_050);
  assert.equal(await waiting, "UNAVAILABLE");
  release();
  await start(ONE_STEP);
  assert.equal(store.executions.size, before + 1);

  const idempotency = { caller: "c", key: "k", bodySha256: "a" };
  const input = { entry: { catalogId: "1", path: "one", version: 1 }, input: {}, idempotency };
  const writes = holdWrites(store, 1);
  const begun = outcome(orchestrator.start(input));
  await writes.held(1);
  await clock.advance(14_900);
  assert.equal(await atOnce(begun), "waits");
  await clock.advance(200);
  assert.equal(await begun, "UNAVAILABLE");
  writes.release();
  await start(ONE_STEP);
  assert.equal((await orchestrator.start(input)).duplicate, true);
  await orchestrator.close();
});

test("a cancellation that waits too long is refused and not done; in time it is done", async () => {
  for (const [ms, expected, status] of [
    [9_950, "taken", "CANCELLED"],
    [10_050, "UNAVAILABLE", "RUNNING"],
  ] as const) {
    const { orchestrator, commands, fill, clock, start, store } = setup();
    const claimed = await commands(2);
    const executionId = await start(ONE_STEP);
    const { release } = await fill(claimed);
    const answer = outcome(orchestrator.inject(executionId, { type: "execution.cancelled", at: 1, reason: "enough" }));
    await clock.advance(ms);
    release();
    assert.equal(await answer, expected);
    await orchestrator.close();
    assert.equal(store.executions.get(executionId)?.status, status);
  }
});

test("the bytes that wait are bounded too; a request that is larger than all of them together is taken when nothing waits", async () => {
  const { orchestrator, commands, fill, report } = setup({ queueMax: 100, queueBytesMax: 100 });
  const claimed = await commands(5);
  const { release, answers } = await fill(claimed);
  const waiting = [report(claimed[2], { bytes: 60 }), report(claimed[3], { bytes: 40 })];
  assert.deepEqual(await Promise.all(waiting.map(atOnce)), ["waits", "waits"]);
  assert.equal(await atOnce(report(claimed[4], { bytes: 1 })), "queue_unavailable");
  release();
  assert.deepEqual(await Promise.all([...answers, ...waiting]), Array(4).fill("taken"));
  assert.equal(await report(claimed[4], { bytes: 101 }), "taken");
  await orchestrator.close();
});

test("one execution has a quarter of the places; what others send is taken", async () => {
  const { orchestrator, commands, fill, start, claimAll, report } = setup({ queueMax: 8 });
  const others = await commands(3);
  await start(FAN_OUT);
  const own = await claimAll(5);
  const { release, answers } = await fill(others);
  const waiting = [report(own[0]), report(own[1])];
  assert.deepEqual(await Promise.all(waiting.map(atOnce)), ["waits", "waits"]);
  assert.equal(await atOnce(report(own[2])), "queue_unavailable");
  waiting.push(report(others[2]));
  assert.deepEqual(await Promise.all(waiting.map(atOnce)), ["waits", "waits", "waits"]);
  release();
  assert.deepEqual(await Promise.all([...answers, ...waiting]), Array(5).fill("taken"));
  await orchestrator.close();
});

test("a server that stops answers what waits, and refuses what comes", async () => {
  const { orchestrator, commands, fill, start, report } = setup();
  const claimed = await commands(6);
  const { release, answers } = await fill(claimed);
  const waiting = [...claimed.slice(2, 5).map((command) => report(command)), outcome(start(ONE_STEP))];
  assert.deepEqual(await Promise.all(waiting.map(atOnce)), Array(4).fill("waits"));
  const closed = orchestrator.close();
  assert.equal(await atOnce(report(claimed[5])), "worker_unavailable");
  assert.equal(await atOnce(closed), "waits");
  release();
  await closed;
  assert.deepEqual(await Promise.all([...answers, ...waiting].map(atOnce)), Array(6).fill("taken"));
});

test("a command that another worker has taken while its report waited: the report is refused, and nothing of it is written", async () => {
  const { orchestrator, another, commands, fill, store, report } = setup({ leaseMs: 0 });
  const claimed = await commands(3);
  const { release, answers } = await fill(claimed);
  const late = claimed[2] ?? assert.fail();
  const answer = report(late, { claim: claimOf("w") });
  const other = another();
  const taken = await other.claimOne(late.command.command_id, "w2");
  assert.equal(taken?.attempt, 2);
  release();
  await Promise.all(answers);
  assert.equal(await answer, "CONFLICT");
  assert.equal(store.executions.get(late.command.execution_id)?.endedAt, null);
  assert.equal(await outcome(other.report(endOf(taken))), "taken");
  await Promise.all([orchestrator.close(), other.close()]);
});

function claimOf(worker: string) {
  return { worker, limit: 1, kinds: undefined, labels: {}, waitMs: 0 };
}
