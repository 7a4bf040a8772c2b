import assert from "node:assert/strict";
import { test } from "node:test";
import type { TaskError } from "../../../src/schema/words/outcome.ts";
import type { Orchestrator } from "../../../src/services/orchestration/orchestrator.ts";
import type { ClaimedCommand } from "../../../src/services/orchestration/rounds/types.ts";
import { openOrchestrator, type TestOrchestrator } from "../../support/engine/orchestrator.ts";

/* Commands whose workers are lost one after the other (`FLOW_COMMAND_LOST_LIMIT`). */

const ONE_STEP = `apiVersion: flow/v2
kind: Playbook
metadata: {name: p, path: p}
workflow:
  - step: start
    tool: {kind: noop}
    next: {arcs: [{step: rescue, when: "{{ event.name == 'step.failed' and output.error.code == 'WORKER_LOST' }}"}]}
  - step: rescue
    tool: {kind: noop}
`;
const IN_LOOP = `apiVersion: flow/v2
kind: Playbook
metadata: {name: p, path: p}
workflow:
  - step: start
    loop: {in: [1, 2], iterator: n, spec: {on_error: {tolerate: 1}}}
    tool: {kind: noop}
`;

const take = (orchestrator: Orchestrator, worker: string, waitMs = 0) =>
  orchestrator.claim({ worker, limit: 1, waitMs, kinds: undefined, labels: {} });
const offer = ({ orchestrator }: Pick<TestOrchestrator, "orchestrator">, id: string, worker: string, isGone = true) =>
  orchestrator.offer([id], { worker, isGone });

/** Claims the command once for each of these workers, and loses it with each. */
async function lose(opened: TestOrchestrator, workers: readonly string[]): Promise<ClaimedCommand> {
  let claimed: ClaimedCommand | undefined;
  for (const worker of workers) {
    const [found] = await take(opened.orchestrator, worker);
    assert.ok(found, `worker '${worker}' got nothing`);
    assert.equal(found.command.command_id, claimed?.command.command_id ?? found.command.command_id);
    claimed = found;
    await offer(opened, found.command.command_id, worker);
  }
  assert.ok(claimed);
  return claimed;
}

function failureOf(opened: TestOrchestrator, executionId: string): TaskError | undefined {
  const log = opened.store.events.get(executionId) ?? [];
  return log.find(({ event_type }) => event_type === "command.failed")?.["error"] as TaskError | undefined;
}

test("a command that was lost once less than the limit is claimed again, and its log says who lost it", async () => {
  const opened = openOrchestrator();
  const executionId = await opened.start(ONE_STEP);
  await lose(opened, ["w1", "w2"]);
  const [again] = await take(opened.orchestrator, "w3");
  assert.equal(again?.attempt, 3);
  assert.equal(failureOf(opened, executionId), undefined);
  const claims = (opened.store.events.get(executionId) ?? []).filter((row) => row.event_type === "command.claimed");
  assert.deepEqual(
    claims.map(({ worker, meta }) => [worker, meta]),
    [
      ["w1", undefined],
      ["w2", { lost_by: "w1" }],
      ["w3", { lost_by: "w2" }],
    ],
  );
  await opened.orchestrator.close();
});

test("a command that was lost as often as the limit says fails with WORKER_LOST, and names the workers", async () => {
  const opened = openOrchestrator();
  const executionId = await opened.start(ONE_STEP);
  const { command } = await lose(opened, ["w1", "w2", "w1"]);
  const error = failureOf(opened, executionId);
  assert.ok(error);
  const { message, ...rest } = error;
  assert.deepEqual(rest, {
    kind: "unknown",
    code: "WORKER_LOST",
    retryable: false,
    details: { workers: ["w1", "w2", "w1"] },
    step: "start",
  });
  assert.match(
    message,
    new RegExp(`^Command ${command.command_id} of step 'start' was lost 3 times: workers 'w1' and 'w2' `),
  );
  const [rescue] = await take(opened.orchestrator, "w2");
  assert.equal(rescue?.command.step, "rescue", "an arc reads the code");
  assert.deepEqual(await take(opened.orchestrator, "w2"), [], "and the command is nobody's");
  assert.deepEqual(opened.faults, []);
  await opened.orchestrator.close();
});

test("a command that failed so is not failed again by another notice, and its worker is told that it lost it", async () => {
  const opened = openOrchestrator();
  const executionId = await opened.start(ONE_STEP);
  const { command, attempt } = await lose(opened, ["w1", "w2", "w3"]);
  const log = opened.store.events.get(executionId)?.length;
  await offer(opened, command.command_id, "w3");
  assert.equal(opened.store.events.get(executionId)?.length, log);
  const row = opened.store.commands.get(command.command_id);
  assert.deepEqual([row?.status, row?.worker], ["FAILED", null]);
  assert.ok((row?.attempt ?? 0) > attempt, "the last claim is not the present one any more");
  await opened.orchestrator.close();
});

test("with a limit of one the first lost claim is the last", async () => {
  const limits = { leaseMs: 1, lostClaims: 1, ackMs: 10_000, queueMax: 9, processingMs: 15_000, processors: 1 };
  const opened = openOrchestrator({ limits });
  const executionId = await opened.start(ONE_STEP);
  await lose(opened, ["w1"]);
  const error = failureOf(opened, executionId);
  assert.match(error?.message ?? "", /was lost once: worker 'w1' stopped/);
  await opened.orchestrator.close();
});

test("a command that is given back is claimed again without end", async () => {
  const opened = openOrchestrator();
  const executionId = await opened.start(ONE_STEP);
  for (let attempt = 1; attempt <= 10; attempt += 1) {
    const [claimed] = await take(opened.orchestrator, "w1");
    assert.equal(claimed?.attempt, attempt);
    await offer(opened, claimed.command.command_id, "w1", false);
  }
  assert.equal(failureOf(opened, executionId), undefined);
  await opened.orchestrator.close();
});

test("a server that did not see the earlier losses counts them from the log", async () => {
  const opened = openOrchestrator();
  const executionId = await opened.start(ONE_STEP);
  await lose(opened, ["w1", "w2"]);
  const [last] = await take(opened.orchestrator, "w3");
  assert.ok(last);
  const other = opened.another();
  await offer({ orchestrator: other }, last.command.command_id, "w3");
  assert.deepEqual(failureOf(opened, executionId)?.details, { workers: ["w1", "w2", "w3"] });
  await other.close();
  await opened.orchestrator.close();
});

test("a server with an old state in memory loads the execution before it judges", async () => {
  const opened = openOrchestrator();
  const other = opened.another();
  const executionId = await opened.start(ONE_STEP);
  const { command } = await lose(opened, ["w1"]);
  // From here on only the other server sees what happens.
  for (const worker of ["w2", "w3"]) {
    await offer({ orchestrator: other }, command.command_id, "w1");
    const [claimed] = await take(other, worker);
    assert.ok(claimed, worker);
    await offer({ orchestrator: other }, command.command_id, worker);
    if (worker === "w3") break;
  }
  assert.deepEqual(failureOf(opened, executionId)?.details, { workers: ["w1", "w2", "w3"] });
  await other.close();
  await opened.orchestrator.close();
});

test("a report that arrives before the loss is judged counts, and the command is not failed", async () => {
  const opened = openOrchestrator();
  const executionId = await opened.start(ONE_STEP);
  await lose(opened, ["w1", "w2"]);
  const [last] = await take(opened.orchestrator, "w3");
  assert.ok(last);
  const { command_id, step } = last.command;
  const end = {
    type: "command.completed",
    at: Date.now(),
    command_id,
    attempt: last.attempt,
    step,
    worker: "w3",
  } as const;
  const reported = opened.orchestrator.report({
    caller: "w3",
    idempotencyKey: null,
    bodySha256: "a",
    events: [{ executionId, event: end }],
    isAwaited: true,
  });
  await Promise.all([reported, offer(opened, command_id, "w3")]);
  assert.equal(failureOf(opened, executionId), undefined);
  await opened.orchestrator.close();
});

test("an iteration whose worker is lost too often fails as an iteration does", async () => {
  const opened = openOrchestrator();
  const executionId = await opened.start(IN_LOOP);
  await lose(opened, ["w1", "w2", "w3"]);
  const [other] = await take(opened.orchestrator, "w4");
  assert.equal(other?.command.loop?.from, 1);
  const { state } = (await opened.view(executionId))!;
  assert.deepEqual(state.steps["start"]?.loop, { total: 2, done: 1, failed: 1 });
  await opened.orchestrator.close();
});
