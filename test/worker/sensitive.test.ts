import assert from "node:assert/strict";
import { test } from "node:test";
import { type Bench, setup } from "./support/bench.ts";
import { recordsOf } from "./support/recorded.ts";
import { bad, ok } from "./support/scripted-tools.ts";

// Language document, section 12: `spec.result.sensitive` keeps a result out of every event.

const CANARY = "canary-51c0ffee";

function assertNowhere(bench: Bench): void {
  for (const { state, events } of bench.executions()) {
    for (const record of recordsOf(state, events)) {
      assert.ok(
        !JSON.stringify(record).includes(CANARY),
        `It stands in ${record.event_type}: ${JSON.stringify(record)}`,
      );
    }
  }
}

const SENSITIVE = "spec: { result: { sensitive: true } }";

for (const [where, step, task] of [
  ["the step", SENSITIVE, ""],
  ["the task", "", `, ${SENSITIVE}`],
] as const) {
  test(`a result that ${where} calls sensitive is used by later steps and stands in no event`, async (t) => {
    const secret = [ok({ token: CANARY, list: [CANARY] }, { virtual: { command_0: CANARY } })];
    const bench = setup(t, { tools: { secret, use: [ok({})] } });
    const ran = await bench.completed(`
workflow:
  - step: secret
    ${step}
    tool: { kind: http, name: secret ${task}, output_select: [{ path: $.token, as: chosen }] }
    next: { arcs: [{ step: use, when: "output.token is string", set: { length: "{{ output.token | length }}" } }] }
  - step: use
    tool: { kind: shell, name: use, cmd: "{{ secret.token }} {{ secret.list[0] }} {{ secret.command_0 }} {{ secret.data.token }}" }
`);
    assertNowhere(bench);
    assert.equal(bench.calls[1]?.config["cmd"], Array(4).fill(CANARY).join(" "));
    assert.deepEqual(ran.state.vars, { length: CANARY.length });
    const { result } = ran.of("task.done")[0] ?? {};
    assert.deepEqual(result?.ref?.extracted, {});
    assert.deepEqual(result?.ref?.preview, { truncated: true, bytes: 0, sample: "" });
  });
}

test("a sensitive result is in no event of pipelines, loops and retries", async (t) => {
  let runs = 0;
  const secret = () =>
    ++runs === 1 ? bad("timeout", "T", { data: { token: CANARY } }) : ok({ token: CANARY, n: runs });
  const bench = setup(t, { tools: { secret } });
  await bench.completed(`
workflow:
  - step: each
    ${SENSITIVE}
    loop: { in: 3 }
    tool:
      - secret: { kind: http, retry: { max_attempts: 2 } }
      - after: { kind: noop, result: { seen: "{{ secret.token | length }}" } }
    next: [{ step: read }]
  - step: read
    tool: { kind: noop, result: { lengths: "{{ each.results[0].token | length }}" } }
`);
  assertNowhere(bench);
});

test("a result that is not called sensitive does stand in its event", async (t) => {
  const bench = setup(t, { tools: { secret: [ok({ token: CANARY })] } });
  await bench.completed("workflow: [{ step: a, tool: { kind: http, name: secret } }]");
  assert.throws(() => assertNowhere(bench), /task\.done/);
});
