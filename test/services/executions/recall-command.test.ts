import assert from "node:assert/strict";
import { test } from "node:test";
import type { ReportedEvent } from "../../../src/schema/api/event-input.ts";
import { commandFromLog } from "../../../src/services/executions/recall-command.ts";
import { SNAPSHOT_EVENTS } from "../../../src/services/orchestration/memory/load-execution.ts";
import { createProgramCache } from "../../../src/services/orchestration/memory/program-cache.ts";
import type { ClaimedCommand } from "../../../src/services/orchestration/rounds/types.ts";
import { documents } from "../../support/engine/documents.ts";
import { openOrchestrator } from "../../support/engine/orchestrator.ts";

// A command that has no row any more, made again from the log.

const LOOP = `apiVersion: flow/v2
kind: Playbook
metadata: { name: p }
workflow:
  - step: each
    loop: { in: 1000, iterator: n, spec: { mode: parallel } }
    tool: { kind: noop, note: "{{ n }}" }
    next: { arcs: [{ step: end, args: { given: 7 } }] }
  - step: end
    tool: { kind: noop, note: "{{ given }}" }
`;

const claim = { worker: "w", limit: 100, kinds: undefined, labels: {}, waitMs: 1_000 };

/** What a worker reports of a command that it has run: of a loop, with its only iteration. */
function endOf({ command, attempt }: ClaimedCommand): { executionId: string; event: ReportedEvent }[] {
  const { command_id, step, execution_id: executionId, loop } = command;
  const ref = { at: Date.now(), command_id, attempt, step, worker: "w" };
  if (loop === undefined) return [{ executionId, event: { type: "command.completed", ...ref, tasks: [] } }];
  return [
    { executionId, event: { type: "loop.iteration.completed", ...ref, iteration: loop.from, tasks: [] } },
    { executionId, event: { type: "command.completed", ...ref, iterations: 1 } },
  ];
}

/** Runs the loop to its end; gives what each command was given, with the event that issued it. */
async function ran() {
  const opened = openOrchestrator();
  const { orchestrator, store } = opened;
  const executionId = await opened.start(LOOP);
  while (store.executions.get(executionId)?.status === "RUNNING") {
    const commands = await orchestrator.claim(claim);
    const events = commands.flatMap(endOf);
    await orchestrator.report({ caller: "w", idempotencyKey: null, bodySha256: "", events });
  }
  assert.equal(store.executions.get(executionId)?.status, "COMPLETED");
  const pages: number[] = [];
  const deps = {
    store: {
      find: store.find,
      snapshotUpTo: store.snapshotUpTo,
      eventsAfter: (id: string, after: number, limit: number) => {
        pages.push(after);
        return store.eventsAfter(id, after, limit);
      },
    },
    programs: createProgramCache(async () => ({ path: "p", version: 1, content: LOOP }), documents),
  };
  const issues = (store.events.get(executionId) ?? [])
    .filter(({ event_type }) => event_type === "command.issued")
    .map((record) => ({ executionId, commandId: String(record["command_id"]), issuedId: record.event_id }));
  await orchestrator.close();
  return { store, deps, pages, issues, executionId };
}

test("the first command and the last are made again as they were issued", async () => {
  const { store, deps, issues, pages, executionId } = await ran();
  const [first, last] = [issues[0], issues.at(-1)];
  assert.ok(first !== undefined && last !== undefined && issues.length === 1_001);
  for (const issue of [first, last]) {
    const made = await commandFromLog(deps, issue);
    assert.equal(JSON.stringify(made), store.issuedBodies.get(issue.commandId));
  }
  const snapshot = store.executions.get(executionId)?.snapshot;
  assert.ok(snapshot != null && snapshot.eventId > SNAPSHOT_EVENTS);
  assert.equal(pages[0], Number(executionId), "the snapshots are younger than the first");
});

test("only events after a snapshot that is older than the command are folded", async () => {
  const { store, deps, issues, pages, executionId } = await ran();
  const last = issues.at(-1);
  const snapshot = store.executions.get(executionId)?.snapshot;
  assert.ok(last !== undefined && snapshot != null && snapshot.eventId < last.issuedId);
  pages.length = 0;
  await commandFromLog(deps, last, 1);
  assert.equal(pages[0], snapshot.eventId);
});

test("of several snapshots the last one before the command is taken", async () => {
  const { store, deps, issues, pages, executionId } = await ran();
  const [row, snapshots, last] = [store.executions.get(executionId), store.snapshots.get(executionId), issues.at(-1)];
  const known = snapshots?.at(-1);
  assert.ok(row != null && known !== undefined && last !== undefined && known.eventId < last.issuedId);
  // As if the execution had gone on after it.
  row.snapshot = { ...known, eventId: row.lastEventId, state: "no JSON" };
  pages.length = 0;
  const made = await commandFromLog(deps, last, 2_000);
  assert.equal(JSON.stringify(made), store.issuedBodies.get(last.commandId));
  assert.equal(pages[0], known.eventId);
});

test("beyond the most events that are folded it says so", async () => {
  const { deps, issues } = await ran();
  const far = issues.find((_, index) => index === 999);
  assert.ok(far !== undefined);
  await assert.rejects(commandFromLog(deps, far, 1_000), {
    code: "NOT_FOUND",
    message: /not kept after its end. It would follow from the log, but more than 1,000 events came before it/,
  });
  assert.ok((await commandFromLog(deps, far, 2_000)) !== undefined);
});

test("an execution that is gone has no commands", async () => {
  const { deps, issues, store, executionId } = await ran();
  store.executions.delete(executionId);
  assert.ok(issues[0] !== undefined);
  assert.equal(await commandFromLog(deps, issues[0]), undefined);
});
