import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../../src/adapters/system-clock.ts";
import type { GivenDecision } from "../../../src/engine/decide/approvals.ts";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import type { OrchestratorDeps } from "../../../src/services/orchestration/orchestrator.ts";
import { createPureSteps } from "../../../src/worker/command/pure-steps.ts";
import { createMemoryStore } from "../../support/engine/memory-store.ts";
import { openOrchestrator, type TestOrchestrator } from "../../support/engine/orchestrator.ts";

/* Approvals (control, section 2 and rules 22 to 32), over a store in memory whose clock the tests move. */

const playbook = (approval: string, wait = "", step = "") => `apiVersion: flow/v2
kind: Playbook
metadata: { name: p, path: p }
workload: { version: 7 }
workflow:
  - step: a
    ${step}
    tool: { kind: wait, approval: { title: "Release {{ workload.version }}?", ${approval} }, ${wait} }
    next: { arcs: [{ step: end }] }
  - { step: end, tool: { kind: noop, result: { got: "{{ a }}" } } }
`;

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** A server that runs waits itself, and whose clock stands still until it is moved. */
function serve(runsSteps = true) {
  let now = Date.UTC(2026, 0, 1);
  const clock = { ...systemClock, now: () => now, busy: () => 0 };
  const steps = createPureSteps({ worker: "s", clock, random: Math.random, signal: new AbortController().signal });
  const more: Partial<OrchestratorDeps> = { clock, ...(runsSteps && { pureSteps: steps }) };
  const service = openOrchestrator(
    more,
    createMemoryStore(() => now),
  );
  return {
    ...service,
    /** Moves the clock, and a server wakes what has come due. */
    async move(ms: number, server = service.orchestrator) {
      now += ms;
      return await server.recovery.wake();
    },
    now: () => now,
    /** The one approval that is open. */
    place(executionId: string) {
      const found = [...service.store.approvals.values()].find(({ outcome }) => outcome === undefined);
      return { approvalId: found?.approvalId ?? "", executionId, commandId: found?.opened?.commandId ?? "" };
    },
  };
}

const said = (by: string, more: Partial<GivenDecision> = {}): GivenDecision => ({ decision: "approve", by, ...more });
const row = ({ store }: TestOrchestrator, id: string) => store.executions.get(id);
const types = ({ store }: TestOrchestrator, id: string) => (store.events.get(id) ?? []).map((one) => one.event_type);
const countOf = (service: TestOrchestrator, id: string, wanted: string) =>
  types(service, id).filter((type) => type === wanted).length;
const gotOf = (service: TestOrchestrator, id: string) =>
  (row(service, id)?.result as { got: JsonObject } | undefined)?.got;

test("an approval is opened with its title, and the step goes on with what was said", async () => {
  const service = serve();
  const id = await service.start(playbook("form: { type: object }"));
  const place = service.place(id);
  const opened = service.store.approvals.get(place.approvalId)?.opened;
  assert.equal(opened?.request.title, "Release 7?");
  assert.deepEqual(
    [...service.store.waits.values()].map(({ kind, dueAt }) => [kind, dueAt]),
    [["approval", null]],
  );
  const given = said("ann@example.com", { data: { window: "now" }, comment: "go" });
  assert.equal(await service.orchestrator.decide(place, given), "approved");
  assert.equal(row(service, id)?.status, "COMPLETED");
  const got = gotOf(service, id);
  assert.equal(got?.["outcome"], "approved");
  assert.equal(got?.["by"], "ann@example.com");
  assert.deepEqual(got?.["data"], { window: "now" });
  const at = "2026-01-01T00:00:00.000Z";
  assert.deepEqual(got?.["approvals"], [
    { decision: "approve", by: "ann@example.com", at, data: { window: "now" }, comment: "go" },
  ]);
  assert.equal(service.store.approvals.get(place.approvalId)?.outcome, "approved");
  assert.equal(service.store.waits.size, 0);
  await assert.rejects(service.orchestrator.decide(place, said("bob@example.com")), { code: "CONFLICT" });
});

test("a rejection is a result, and one is enough", async () => {
  const service = serve();
  const id = await service.start(playbook("required: 2"));
  const place = service.place(id);
  assert.equal(await service.orchestrator.decide(place, said("ann")), "open");
  assert.equal(await service.orchestrator.decide(place, said("bob", { decision: "reject" })), "rejected");
  assert.deepEqual([row(service, id)?.status, gotOf(service, id)?.["outcome"]], ["COMPLETED", "rejected"]);
  assert.equal(gotOf(service, id)?.["by"], "bob");
});

test("it takes as many persons as it needs, each once, on whichever server", async () => {
  const service = serve();
  const other = service.another();
  const id = await service.start(playbook("required: 2, rejections: 2"));
  const place = service.place(id);
  assert.equal(await service.orchestrator.decide(place, said("ann")), "open");
  await assert.rejects(other.decide(place, said("ann", { decision: "reject" })), {
    code: "CONFLICT",
    message: /ann has decided already/,
  });
  assert.equal(await other.decide(place, said("bob", { decision: "reject" })), "open");
  assert.equal(await service.orchestrator.decide(place, said("cyd")), "approved");
  assert.equal((gotOf(service, id)?.["approvals"] as unknown[] | undefined)?.length, 3);
});

test("two servers are told by the same person at once: it counts once; by two, one of them comes too late", async () => {
  const service = serve();
  const other = service.another();
  const servers = [service.orchestrator, other];
  const id = await service.start(playbook("required: 2"));
  const place = service.place(id);
  const same = await Promise.allSettled(servers.map((one) => one.decide(place, said("ann"))));
  assert.deepEqual(same.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
  assert.equal(row(service, id)?.status, "RUNNING");
  const two = await Promise.allSettled(servers.map((one, index) => one.decide(place, said(`p${index}`))));
  assert.deepEqual(two.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
  assert.equal(row(service, id)?.status, "COMPLETED");
  assert.equal(types(service, id).filter((type) => type === "approval.decided").length, 2);
  assert.deepEqual(service.faults, []);
});

test("its time-out ends it with WAIT_TIMEOUT, or with a result; it is expired then", async () => {
  for (const [wait, outcome] of [
    ["", undefined],
    ["on_timeout: continue", "timeout"],
  ] as const) {
    const service = serve();
    const id = await service.start(playbook("remind_every: 25s", `timeout: 60, ${wait}`));
    const place = service.place(id);
    await service.move(MINUTE - 1);
    assert.equal(row(service, id)?.status, "RUNNING");
    assert.equal(await service.move(1), 1);
    assert.equal(service.store.approvals.get(place.approvalId)?.outcome, "expired");
    assert.equal(row(service, id)?.status, outcome === undefined ? "FAILED" : "COMPLETED");
    const error = (await service.view(id))?.state.error;
    if (outcome === undefined) assert.deepEqual([error?.kind, error?.code], ["timeout", "WAIT_TIMEOUT"]);
    if (outcome === undefined)
      assert.match(error?.message ?? "", /'Release 7\?' was not decided within its time-out of 60 s/);
    assert.equal(gotOf(service, id)?.["outcome"], outcome);
    await assert.rejects(service.orchestrator.decide(place, said("ann")), { code: "CONFLICT" });
  }
});

test("people are reminded and others asked, each at its time, and told by a playbook: once, whatever the server's clock", async () => {
  const service = serve();
  const notify = `notify: { playbook: tell, input: { text: "{{ approval.reason }} {{ approval.title }}", url: "{{ approval.url }}", due: "{{ approval.due }}", v: "{{ workload.version }}" } }`;
  const id = await service.start(
    playbook(`remind_every: 4m, escalate: { after: 10m, to: { roles: [heads] } }, ${notify}`, "timeout: 3600"),
  );
  const { approvalId } = service.place(id);
  const messages = () => [...service.store.messages.values()].map(({ number, input }) => [number, input["text"]]);
  assert.deepEqual(messages(), [[1, "opened Release 7?"]]);
  const [first] = [...service.store.messages.values()];
  assert.deepEqual(first?.input, {
    ...{ text: "opened Release 7?", url: `approval-link-${approvalId}-1`, due: "2026-01-01T01:00:00.000Z", v: 7 },
  });
  assert.equal(await service.move(4 * MINUTE - 1), 0);
  assert.equal(await service.move(1), 1);
  assert.equal(await service.move(0), 0);
  assert.deepEqual(messages().at(-1), [2, "reminder Release 7?"]);
  // The servers were away: one reminder for all that were missed, and the escalation.
  assert.equal(await service.move(9 * MINUTE), 1);
  assert.deepEqual(
    messages().slice(2),
    [
      [3, "escalation Release 7?"],
      [4, "reminder Release 7?"],
    ].slice(0, messages().length - 2),
  );
  assert.deepEqual(service.store.approvals.get(approvalId)?.escalatedTo, { roles: ["heads"] });
  const before = messages().length;
  assert.equal(await service.move(3 * MINUTE), 1);
  assert.equal(messages().length, before + 1);
  assert.equal(row(service, id)?.status, "RUNNING");
  assert.deepEqual(service.faults, []);
});

test("a server whose clock is hours ahead, or behind, reminds at the store's time, and ends nothing before it", async () => {
  for (const wrongBy of [3 * HOUR, -3 * HOUR]) {
    const service = serve();
    const id = await service.start(
      playbook("remind_every: 30m, escalate: { after: 90m, to: { roles: [heads] } }", "timeout: 2h"),
    );
    const { approvalId } = service.place(id);
    const clock = { ...systemClock, now: () => service.now() + wrongBy, busy: () => 0 };
    const other = service.another({ clock });
    const counts = () => ["approval.reminded", "approval.escalated"].map((type) => countOf(service, id, type));
    await service.move(30 * MINUTE, other);
    assert.deepEqual(counts(), [1, 0]);
    assert.equal(await service.move(0, other), 0);
    await service.move(HOUR, other);
    // The reminder of the first hour was missed: the escalation stands for it.
    assert.deepEqual([...counts(), row(service, id)?.status], [1, 1, "RUNNING"]);
    await service.move(HOUR / 2 - 1, other);
    assert.equal(service.store.approvals.get(approvalId)?.outcome, undefined);
    await service.move(1, other);
    assert.equal(service.store.approvals.get(approvalId)?.outcome, "expired");
    assert.equal(countOf(service, id, "command.woken"), 1);
    assert.deepEqual(service.faults, []);
  }
});

test("a message that cannot be made ends nothing: the log has why", async () => {
  const service = serve();
  const id = await service.start(playbook(`notify: { playbook: "{{ workload.version }}" }`));
  const notified = (service.store.events.get(id) ?? []).find(({ event_type }) => event_type === "approval.notified");
  assert.equal((notified?.["error"] as JsonObject | undefined)?.["kind"], "template");
  assert.equal(service.store.messages.size, 0);
  assert.equal(await service.orchestrator.decide(service.place(id), said("ann")), "approved");
  assert.equal(row(service, id)?.status, "COMPLETED");
});

test("cancelling, ending the step by hand and the step's own time close it", async () => {
  for (const end of ["cancel", "skip", "limit"] as const) {
    const service = serve();
    const id = await service.start(playbook("required: 1", "", end === "limit" ? "spec: { timeout: 60 }" : ""));
    const place = service.place(id);
    if (end === "cancel") await service.orchestrator.inject(id, { type: "execution.cancelled", at: 0, reason: "x" });
    if (end === "skip")
      await service.orchestrator.override(id, {
        type: "step.overridden",
        at: 0,
        step: "a",
        action: "skip",
        reason: "x",
      });
    if (end === "limit") await service.move(MINUTE);
    const outcome = service.store.approvals.get(place.approvalId)?.outcome;
    assert.equal(outcome, end === "limit" ? "expired" : "cancelled", end);
    await assert.rejects(service.orchestrator.decide(place, said("ann")), { code: "CONFLICT" });
    assert.equal(service.store.waits.size, 0);
    assert.deepEqual(service.faults, []);
  }
});

test("what people say during a pause counts at the resumption; no person is reminded meanwhile", async () => {
  const service = serve();
  const id = await service.start(playbook("remind_every: 1m"));
  const place = service.place(id);
  await service.orchestrator.inject(id, { type: "execution.paused", at: 0 });
  assert.equal(await service.move(10 * MINUTE), 0);
  assert.equal(await service.orchestrator.decide(place, said("ann")), "open");
  await service.orchestrator.inject(id, { type: "execution.resumed", at: 0 });
  assert.equal(row(service, id)?.status, "COMPLETED");
  assert.equal(gotOf(service, id)?.["outcome"], "approved");
});

test("a worker that parks the step during a pause opens the approval at the resumption, and learns what was said with its next claim", async () => {
  const service = serve(false);
  const { orchestrator } = service;
  const id = await service.start(playbook("required: 1"));
  const claim = { worker: "w1", limit: 10, kinds: undefined, labels: {}, waitMs: 0 };
  const [first] = await orchestrator.claim(claim);
  assert.ok(first);
  await orchestrator.inject(id, { type: "execution.paused", at: 0 });
  const resume = { task: "a", run: 1, serial: 0, started_at: "2026-01-01T00:00:00.000Z" };
  const parked = {
    ...{ type: "command.parked" as const, at: 0, command_id: first.command.command_id, attempt: 1, step: "a" },
    ...{ task: "a", worker: "w1", resume },
    wait: { kind: "approval" as const, title: "Release 7?", required: 1, rejections: 1 },
  };
  const report = (bodySha256: string) =>
    orchestrator.report({
      ...{ caller: "w1", idempotencyKey: null, bodySha256, isAwaited: true },
      events: [{ executionId: id, event: parked }],
    });
  await report("a");
  assert.equal(service.store.approvals.size, 0);
  await orchestrator.inject(id, { type: "execution.resumed", at: 0 });
  const place = service.place(id);
  assert.equal(await orchestrator.decide(place, said("ann", { data: 3 })), "approved");
  const [second] = await orchestrator.claim({ ...claim, waitMs: 5_000 });
  assert.deepEqual([second?.attempt, second?.command.woken?.approval?.outcome], [2, "approved"]);
  // The worker of before comes back: its report changes nothing.
  await report("b").catch(() => undefined);
  assert.equal(service.store.approvals.size, 1);
});

test("each iteration of a loop waits for its own approval", async () => {
  const service = serve();
  const id = await service.start(
    playbook('description: "of {{ item }}"', "", "loop: { in: [x, y], iterator: item, spec: { mode: parallel } }"),
  );
  const opened = [...service.store.approvals.values()];
  assert.deepEqual(
    opened.map(({ opened: one }) => [one?.iteration, one?.request.description]),
    [
      [0, "of x"],
      [1, "of y"],
    ],
  );
  for (const { approvalId, opened: one } of opened) {
    await service.orchestrator.decide({ approvalId, executionId: id, commandId: one?.commandId ?? "" }, said("ann"));
  }
  assert.equal(row(service, id)?.status, "COMPLETED");
});

test("what cannot be asked fails the step before it waits", async () => {
  const cases: [approval: string, words: RegExp][] = [
    ['required: "{{ 0 }}"', /`approval.required` of a wait must be a number from 1 to 20/],
    ['form: "{{ 3 }}"', /form of an approval must be a JSON Schema/],
    ["form: { type: object, properties: { a: { $ref: \"{{ '#/x' }}\" } } }", /has `\$ref` in properties.a/],
    ["remind_every: \"{{ 'soon' }}\"", /remind_every` of a wait must be a duration/],
  ];
  for (const [approval, words] of cases) {
    const service = serve();
    const id = await service.start(playbook(approval));
    assert.equal(row(service, id)?.status, "FAILED", approval);
    const error = (await service.view(id))?.state.error;
    assert.match(error?.message ?? "", words);
    assert.equal(error?.kind, "configuration");
    assert.equal(service.store.approvals.size, 0);
  }
});
