import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReportedEvent } from "../../../src/schema/api/event-input.ts";
import type { CommandProgram } from "../../../src/services/orchestration/memory/program-cache.ts";
import { createProgramCache } from "../../../src/services/orchestration/memory/program-cache.ts";
import type { ClaimedCommand } from "../../../src/services/orchestration/rounds/types.ts";
import { documents } from "../../support/engine/documents.ts";
import { openOrchestrator } from "../../support/engine/orchestrator.ts";

// A fault of this program over what a worker reports: it is answered, and it comes to an end.

const TWO_STEPS = `apiVersion: flow/v2
kind: Playbook
metadata: { name: two, path: two }
workflow:
  - { step: one, tool: { kind: noop }, next: { arcs: [{ step: two }, { step: two, when: "event.name == 'step.failed'" }] } }
  - { step: two, tool: { kind: noop } }
`;

/** The program, in which looking at the arcs of step `one` is a fault. */
async function broken(): Promise<CommandProgram> {
  const read = async () => ({ path: "two", version: 1, content: TWO_STEPS });
  const source = await createProgramCache(read, documents)("1");
  const step = source.program.steps.get("one");
  assert.ok(step);
  const fault = {
    get: () => {
      throw new TypeError("a fault of the engine");
    },
  };
  // The graph of the steps was made before: only what is decided later looks at it again.
  Object.defineProperty(step, "arcs", fault);
  return source;
}

function ended({ command, attempt }: ClaimedCommand, type: "command.completed" | "command.failed") {
  const { command_id, step, execution_id } = command;
  const error = { kind: "unknown", code: "X", message: "x", retryable: false } as const;
  const base = { at: Date.now(), command_id, attempt, step, tasks: [] };
  const event: ReportedEvent = type === "command.failed" ? { type, ...base, error } : { type, ...base };
  return {
    caller: "w",
    idempotencyKey: null,
    bodySha256: "a",
    isAwaited: true,
    events: [{ executionId: execution_id, event }],
  };
}

async function claimedOf(failing = true) {
  const source = await broken();
  const bench = openOrchestrator(failing ? { programs: () => Promise.resolve(source) } : {});
  const executionId = await bench.start(TWO_STEPS);
  const [command] = await bench.orchestrator.claim({
    worker: "w",
    limit: 1,
    kinds: undefined,
    labels: {},
    waitMs: 1_000,
  });
  assert.ok(command);
  const status = async () => (await bench.view(executionId))?.state;
  return { ...bench, command, status };
}

test("a report that makes this program fail is answered as a fault each time it is sent, and changes nothing", async () => {
  const { orchestrator, command, status, faults } = await claimedOf();
  for (let times = 1; times <= 5; times += 1) {
    await assert.rejects(orchestrator.report(ended(command, "command.completed")), { code: "processing_error" });
    assert.equal(faults.length, times);
  }
  assert.deepEqual([(await status())?.status, Object.keys((await status())?.commands ?? {}).length], ["RUNNING", 1]);
  await orchestrator.close();
});

test("if not even the consequences of the command's failure can be decided, the execution is ended with the reason", async () => {
  const { orchestrator, command, status } = await claimedOf();
  for (let times = 1; times <= 3; times += 1) {
    assert.equal((await status())?.status, "RUNNING");
    await assert.rejects(orchestrator.report(ended(command, "command.failed")), { code: "processing_error" });
  }
  const state = await status();
  assert.equal(state?.status, "FAILED");
  assert.deepEqual([state?.error?.code, state?.commands], ["POISONED", {}]);
  assert.match(state?.error?.message ?? "", new RegExp(`failure of command ${command.command.command_id}.*a fault`));
  await assert.rejects(
    orchestrator.report(ended(command, "command.failed")),
    { code: "CONFLICT" },
    "the worker is told",
  );
  await orchestrator.close();
});

test("a batch that was only accepted and makes this program fail ends its execution", async () => {
  const { orchestrator, command, status } = await claimedOf();
  const { requestId } = await orchestrator.report({ ...ended(command, "command.completed"), isAwaited: false });
  await orchestrator.close();
  assert.equal((await status())?.status, "FAILED");
  assert.match((await status())?.error?.message ?? "", new RegExp(`event batch ${requestId}.*a fault`));
});

test("a refusal ends no execution, however often it occurs", async () => {
  const { orchestrator, command, status } = await claimedOf(false);
  const stale = ended({ ...command, attempt: 7 }, "command.failed");
  for (let times = 1; times <= 5; times += 1) await assert.rejects(orchestrator.report(stale), { code: "CONFLICT" });
  assert.equal((await status())?.status, "RUNNING");
  await orchestrator.close();
});
