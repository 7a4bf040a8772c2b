import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Json } from "../../src/schema/words/json.ts";
import { runFlow } from "../cli/in-process.ts";
import { createServedDatabase } from "../support/database/postgres.ts";
import { ownDatabase } from "../support/engine/key-ring.ts";
import { folderWith } from "../support/service/cli-process.ts";
import { startServe } from "../support/service/serve.ts";

/* Control, rule 6: `flow run --from STEP --using RECORD` runs what a rerun from that step runs on the server, with the same end. */

const BODY = `  - step: fetch
    tool: { kind: noop, result: { rows: [3, 1, 2], rate: 2 } }
    set: { ctx.rate: "{{ fetch.rate }}" }
    next: { spec: { mode: inclusive }, arcs: [{ step: each }, { step: beside }, { step: never, when: "{{ false }}" }] }
  - step: each
    loop: { in: "{{ fetch.rows }}", iterator: n, spec: { mode: parallel } }
    tool: { kind: noop, result: { times: "{{ n * ctx.rate }}" } }
    next: { arcs: [{ step: child, args: { first: "{{ each.results[0].times }}" } }] }
  - step: beside
    tool: { kind: noop, result: { aside: true } }
    next: { arcs: [{ step: publish }] }
  - step: never
    tool: { kind: noop }
  - step: child
    tool: { kind: playbook, path: inner, args: { n: "{{ first }}" } }
    next: { arcs: [{ step: publish }] }
  - step: publish
    when: "{{ fetch.rate == 2 }}"
    tool: { kind: noop, result: { of: "{{ child.more }}", all: "{{ each.results }}", aside: "{{ beside.aside }}" } }
`;
const document = (name: string, workflow: string) =>
  `apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: ${name}, path: ${name} }\nworkflow:\n${workflow}`;
const OUTER = document("outer", BODY);
const INNER = document("inner", `  - { step: in, tool: { kind: noop, result: { more: "{{ n + 1 }}" } } }\n`);
const STEPS = ["fetch", "each", "beside", "child", "publish"];

/** How the steps of a log ended. */
function endsOf(events: readonly Record<string, Json>[]): string[] {
  const ends = events.filter(({ event_type: type }) => /^step\.(completed|failed|skipped)$/.test(String(type)));
  return ends.map(({ event_type: type, node_name: step }) => `${String(step)} ${String(type)}`).sort();
}

/** Steps that did not run and whose results were taken over: of a server's log. */
function reusedIn(events: readonly Record<string, Json>[]): string[] {
  const isReused = ({ event_type: type, meta }: Record<string, Json>) =>
    type === "step.completed" && (meta as Record<string, Json> | null)?.["reused_from"] !== undefined;
  return events.filter(isReused).map(({ node_name: step }) => String(step));
}

test("a run from each step with a record runs what the server's rerun runs, and ends as it does", async (t) => {
  const folder = await folderWith(t, { "outer.yaml": OUTER, "inner.yaml": INNER });
  const { url: databaseUrl } = await createServedDatabase();
  const { url } = await startServe(t, folder, ownDatabase(databaseUrl), ["--role", "all"]);
  const call = async (path: string, body?: Json) => {
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const response = await fetch(`${url}${path}`, body === undefined ? {} : init);
    const text = await response.text();
    assert.ok(response.ok, `${path}: ${response.status} ${text}`);
    return JSON.parse(text) as Record<string, Json>;
  };
  for (const content of [INNER, OUTER]) await call("/api/catalog/register", { content });
  const original = await call("/api/execute", { path: "outer", wait_ms: 30_000 });
  const first = await runFlow(folder, ["run", "outer.yaml", "--record", "run.jsonl", "--json"]);
  assert.equal(first.code, 0, first.stderr);
  for (const step of STEPS) {
    await t.test(`from ${step}`, async () => {
      const record = `from-${step}.jsonl`;
      const args = ["run", "outer.yaml", "--from", step, "--using", "run.jsonl", "--record", record, "--json"];
      const local = await runFlow(folder, args);
      assert.equal(local.code, 0, local.stderr);
      const rerun = await call(`/api/executions/${String(original["execution_id"])}/rerun`, { from: [step] });
      const id = String(rerun["execution_id"]);
      const { status, result } = await call(`/api/executions/${id}/result?wait_ms=30000`);
      assert.equal(status, "COMPLETED");
      assert.deepEqual(JSON.parse(local.stdout).result, result);
      const lines = readFileSync(join(folder, record), "utf8").trim().split("\n");
      const records = lines.map((line) => JSON.parse(line) as Record<string, Json>);
      const own = records.filter(({ execution_id: one }) => one === records[0]?.["execution_id"]);
      const events = (await call(`/api/executions/${id}/events?limit=500`))["events"] as Record<string, Json>[];
      assert.deepEqual(endsOf(own), endsOf(events));
      const [, told = ""] = /reused from run\.jsonl: (.*)/.exec(local.stderr) ?? [];
      const reused = told.trim() === "nothing" ? [] : told.trim().split(", ");
      assert.deepEqual(reused.sort(), reusedIn(events).sort());
    });
  }
});
