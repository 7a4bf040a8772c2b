import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../src/adapters/system-clock.ts";
import type { ClaimAnswer, ClaimedWork } from "../../src/ports/work-server.ts";
import { runClaimLoop } from "../../src/worker/loop/claim-loop.ts";
import { createSlots } from "../../src/worker/slots.ts";
import type { WorkerEvent } from "../../src/worker/worker-event.ts";

/** Claims of a server that answers when it is told to. */
function setup() {
  const started: ClaimedWork[] = [];
  const told: WorkerEvent[] = [];
  const requests: { answer(answer: ClaimAnswer): void; signal: AbortSignal }[] = [];
  const stop = new AbortController();
  const ended = runClaimLoop(
    {
      server: {
        claim: (_, signal) =>
          new Promise((resolve, reject) => {
            requests.push({ answer: resolve, signal });
            signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
          }),
      },
      clock: systemClock,
      random: Math.random,
      slots: createSlots(4),
      start: (commands) => void started.push(...commands),
      unknown: () => undefined,
      emit: (event) => void told.push(event),
    },
    stop.signal,
  );
  return { started, told, requests, stop, ended };
}

const WORK = { command: { command_id: "1" }, attempt: 1 } as unknown as ClaimedWork;

test("commands in the answer that was under way when claiming stopped are run: they are this worker's", async () => {
  const { started, requests, stop, ended } = setup();
  stop.abort();
  requests[0]?.answer({ status: "ok", commands: [WORK] });
  await ended;
  assert.deepEqual(started, [WORK]);
  assert.equal(requests.length, 1);
});

test("an answer that does not come is waited for no longer than a second, and nothing is said of it", async () => {
  const { told, requests, stop, ended } = setup();
  const began = performance.now();
  stop.abort();
  await ended;
  assert.equal(requests[0]?.signal.aborted, true);
  assert.ok(performance.now() - began < 10_000);
  assert.deepEqual(told, []);
});
