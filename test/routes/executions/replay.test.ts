import assert from "node:assert/strict";
import { before, test } from "node:test";
import { readDocument } from "../../../src/cli/watch/server-playbook.ts";
import { parseRecordedRun } from "../../../src/testing/recorded-run.ts";
import { type ReplayOutcome, replayRun } from "../../../src/testing/replay.ts";
import { type Body, openApi } from "../../support/service/api.ts";
import { type Claimed, endOf, workWith } from "../../support/service/api-work.ts";

/* Executions that were steered (repeated, paused, ended by hand) are decided again from their logs, as others are. */

const api = await openApi();
const work = workWith(api);

const STEPS = `  - step: fetch
    tool: { kind: http, url: "https://example.org/" }
    set: { ctx.n: "{{ fetch.n }}" }
    next: { spec: { mode: inclusive }, arcs: [{ step: each }, { step: side }] }
  - step: side
    tool: { kind: http, url: "https://example.org/" }
  - step: each
    loop: { in: [1, 2, 3], iterator: x, spec: { mode: parallel } }
    tool: { kind: http, method: POST, url: "https://example.org/", json: { x: "{{ x }}" } }
    next: { arcs: [{ step: last, args: { total: "{{ each | length }}", n: "{{ n }}" } }] }
  - step: last
    tool: { kind: http, url: "https://example.org/" }
`;
const document = (workflow: string) =>
  `apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: steered, path: e/steered }\nworkload: { who: world }\nworkflow:\n${workflow}`;
before(() => work.register("e/steered", STEPS));

/** The whole log of an execution, decided again; with its own workflow unless another one is given. */
async function replayed(id: string, workflow = STEPS): Promise<ReplayOutcome> {
  const { body } = await work.get(`/api/executions/${id}/events?limit=500`);
  const text = (body["events"] as Body[]).map((event) => JSON.stringify(event)).join("\n");
  const playbook = readDocument(document(workflow), "e/steered");
  assert.ok(playbook);
  return await replayRun(parseRecordedRun(text, "run.jsonl"), playbook.program);
}

/** It goes the same way; with a changed arc it does not, and the difference has a place. */
async function assertReplays(id: string): Promise<void> {
  const same = await replayed(id);
  assert.equal(same.difference, undefined, JSON.stringify(same.difference));
  const other = await replayed(id, STEPS.replace("each | length", "(each | length) + 1"));
  assert.match(other.difference?.what ?? "", /of step 'each'/);
}

const isOver = async (id: string) => (await work.get(`/api/executions/${id}`)).body["ended_at"] !== null;

/** Works off what can be claimed; commands of `failing` fail. */
async function finish(id: string, failing?: string): Promise<void> {
  for (let looks = 0; !(await isOver(id)); looks += 1) {
    assert.ok(looks < 100, `execution ${id} has not ended`);
    for (const command of await work.claim("w", 10, 50)) await end(command, command.step === failing);
  }
}

async function end(command: Claimed, isFailed = false): Promise<void> {
  const { command_id, execution_id, attempt, step } = command;
  const loop = command["loop"] as { from: number; items: unknown[] } | undefined;
  const error = { kind: "unknown", code: "X", message: "no", retryable: false };
  const ref = { command_id, execution_id, attempt, step };
  const events: Body[] =
    loop === undefined
      ? endOf(command, { n: 7 })
      : [
          ...loop.items.flatMap((_, index) => {
            const iteration = loop.from + index;
            const task = {
              ...endOf(command, { x: iteration })[0],
              iteration,
              task_run_id: `${command_id}-${iteration}`,
            };
            return [
              task,
              {
                ...ref,
                event_type: "loop.iteration.completed",
                iteration,
                result: { status: "ok", context: { tasks: [step] } },
              },
            ];
          }),
          { ...ref, event_type: "command.completed" },
        ];
  const told = isFailed ? [{ ...ref, event_type: "command.failed", error }] : events;
  const { status, body } = await work.post("/api/events/batch", { worker: "w", events: told });
  assert.equal(status, 202, JSON.stringify(body));
}

test("reruns, from a step, of what failed, of these steps alone and from the start", async () => {
  const id = await work.execute("e/steered");
  await finish(id, "last");
  for (const body of [
    {},
    { from: ["each"] },
    { from: "start", input: { who: "you" } },
    { from: ["each"], variables: { n: 9 } },
  ]) {
    const { body: begun } = await work.post(`/api/executions/${id}/rerun`, body);
    const again = String(begun["execution_id"]);
    await finish(again);
    const same = await replayed(again);
    assert.equal(same.difference, undefined, `${JSON.stringify(body)} ${JSON.stringify(same.difference)}`);
    if ("from" in body) await assertReplays(again);
  }
  const { body } = await work.post(`/api/executions/${id}/rerun`, { from: ["each"], only: true });
  await finish(String(body["execution_id"]));
  assert.equal((await replayed(String(body["execution_id"]))).difference, undefined);
});

test("an execution that was paused and resumed, with an end in between", async () => {
  const id = await work.execute("e/steered");
  const [first] = await work.claim("w");
  await work.post(`/api/executions/${id}/pause`, { reason: "noon" });
  await end(first as Claimed);
  assert.equal((await replayed(id)).difference, undefined);
  await work.post(`/api/executions/${id}/resume`);
  await finish(id);
  await assertReplays(id);
});

test("steps and iterations that a person ended, before they began, while they ran and during a pause", async () => {
  for (const [step, order] of [
    ["side", { action: "skip" }],
    ["side", { action: "fail" }],
    ["last", { action: "complete", result: { by: "hand" } }],
    ["each", { action: "skip", iteration: 1 }],
    ["each", { action: "complete", iteration: 2, result: 5 }],
    ["each", { action: "complete" }],
  ] as const) {
    const id = await work.execute("e/steered");
    const [first] = await work.claim("w");
    if (step === "last") await override(id, step, order);
    await end(first as Claimed);
    if (step !== "last") await override(id, step, order);
    await finish(id);
    const same = await replayed(id);
    assert.equal(same.difference, undefined, `${step} ${JSON.stringify(order)} ${JSON.stringify(same.difference)}`);
  }
  const id = await work.execute("e/steered");
  const [first] = await work.claim("w");
  await end(first as Claimed);
  await work.post(`/api/executions/${id}/pause`);
  await override(id, "each", { action: "complete" });
  await work.post(`/api/executions/${id}/resume`);
  await finish(id);
  assert.equal((await replayed(id)).difference, undefined);
});

async function override(id: string, step: string, order: Body): Promise<void> {
  // A report is answered before what follows from it is decided.
  let why = "";
  for (let tries = 0; tries < 100; tries += 1) {
    const { status, body } = await work.post(`/api/executions/${id}/steps/${step}/override`, {
      ...order,
      reason: "by hand",
    });
    if (status === 202) return;
    why = JSON.stringify(body);
    assert.equal(status, 409, why);
  }
  assert.fail(`step '${step}' was never there to be ended: ${why}`);
}
