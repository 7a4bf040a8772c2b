import assert from "node:assert/strict";
import { before, test } from "node:test";
import { workWith } from "../../support/service/api-work.ts";
import { folderWith } from "../../support/service/cli-process.ts";
import { command } from "../in-process.ts";
import { openOperatedApi } from "../operated-api.ts";

/* `flow export` of a server's run, and its replay. */

const { api, commands } = await openOperatedApi();
const work = workWith(api);
const STEPS = `  - step: start
    tool: { kind: noop }
    next: { arcs: [{ step: each, when: "{{ result.step == 'start' }}" }, { step: never }] }
  - step: each
    loop: { in: 40, iterator: n, spec: { mode: parallel } }
    tool: { kind: python, code: "return n" }
    next: { arcs: [{ step: end, args: { found: "{{ each | length }}" } }] }
  - { step: never, tool: { kind: noop } }
  - { step: end, tool: { kind: noop } }
`;
before(() => work.register("etl/load", STEPS));

/** Runs the commands of an execution to its end, iterations too. */
async function ran(): Promise<string> {
  const id = await work.execute("etl/load");
  for (;;) {
    if ((await work.get(`/api/executions/${id}`)).body["ended_at"] !== null) return id;
    for (const claimed of await work.claim("w", 100, 100)) {
      const loop = claimed["loop"] as { from: number; items: unknown[] } | undefined;
      if (loop === undefined) await work.finish("w", claimed, { step: claimed.step });
      else await finishIterations(claimed, loop);
    }
  }
}

async function finishIterations(
  claimed: { command_id: string; execution_id: string; attempt: number; step: string },
  loop: { from: number; items: unknown[] },
) {
  const { command_id, execution_id, attempt, step } = claimed;
  const ref = { command_id, execution_id, attempt, step };
  const events = loop.items.flatMap((_, index) => {
    const iteration = loop.from + index;
    const task = { ...ref, event_type: "task.done", task: step, iteration, task_run_id: `${command_id}-${iteration}` };
    const result = { status: "ok", context: { task: step, value: iteration } };
    return [
      { ...task, result, duration_ms: 1 },
      {
        ...ref,
        event_type: "loop.iteration.completed",
        iteration,
        result: { status: "ok", context: { tasks: [step] } },
      },
    ];
  });
  const { status, body } = await work.post("/api/events/batch", {
    worker: "w",
    events: [...events, { ...ref, event_type: "command.completed" }],
  });
  assert.equal(status, 202, JSON.stringify(body));
}

test("an exported run has its document and its events, and is decided again as it was", async (t) => {
  const run = await commands(t);
  const id = await ran();
  const { code, stdout, stderr } = await run("export", id);
  assert.deepEqual([code, stderr], [0, ""]);
  const [header, ...events] = stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  const { flow_record, execution_id, path, version, playbook } = header;
  assert.deepEqual([flow_record, execution_id, path, version], [1, id, "etl/load", 1]);
  assert.match(playbook, /step: each/);
  const log = (await work.get(`/api/executions/${id}/events?limit=500`)).body["events"] as { event_id: number }[];
  assert.deepEqual(
    events.map(({ event_id }) => event_id),
    log.map(({ event_id }) => event_id),
  );
  const folder = await folderWith(t, {
    "run.jsonl": stdout,
    "new.yaml": playbook.replace("result.step == 'start'", "false"),
  });
  const same = await command(folder, ["replay", "run.jsonl"]);
  assert.equal(same.code, 0, same.stdout + same.stderr);
  const other = await command(folder, ["replay", "run.jsonl", "--playbook", "new.yaml"]);
  assert.equal(other.code, 1);
  assert.match(other.stdout, /next\.evaluated|step\.completed/);
});

test("a run that has not ended is exported until now, with a note, and replayed as far as it goes", async (t) => {
  const run = await commands(t);
  const id = await work.execute("etl/load");
  const { code, stdout, stderr } = await run("export", id);
  assert.equal(code, 0);
  assert.match(stderr, /has not ended/);
  const folder = await folderWith(t, { "run.jsonl": stdout });
  assert.equal((await command(folder, ["replay", "run.jsonl"])).code, 0);
});

test("an unknown execution and a limit that is no number are refused", async (t) => {
  const run = await commands(t);
  assert.equal((await run("export", "7")).code, 2);
  for (const bytes of ["-1", "x", "1e9", "999999999999"]) {
    const { code, stderr } = await run("export", "7", "--max-bytes", bytes);
    assert.equal(code, 2);
    assert.match(stderr, /--max-bytes takes a number of bytes/);
  }
});
