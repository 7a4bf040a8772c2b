import assert from "node:assert/strict";
import { test } from "node:test";
import { type Bench, setup } from "../support/bench.ts";
import { recordsOf } from "../support/recorded.ts";
import { bad, ok } from "../support/scripted-tools.ts";

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

test("what arcs, assignments and loops pass on of a sensitive result arrives, and stands in no event", async (t) => {
  const person = { name: CANARY, items: [`${CANARY}-1`, `${CANARY}-2`], digits: 51_005_100, ok: true };
  const bench = setup(t, { tools: { secret: [ok(person)], use: [ok({ text: `it was ${CANARY}` })], each: [ok({})] } });
  const ran = await bench.completed(`
workflow:
  - step: secret
    ${SENSITIVE}
    tool: { kind: http, name: secret }
    set: { whole: "{{ secret }}", greeting: "Dear {{ secret.name }}" }
    next:
      arcs:
        - { step: never, when: "{{ secret.name == 'somebody' }}" }
        - { step: use, when: "{{ secret.ok and secret.digits > 51000000 }}", args: { who: "{{ secret.name }}", digits: "{{ secret.digits }}" } }
  - { step: never, tool: { kind: noop } }
  - step: use
    tool: { kind: shell, name: use, cmd: "{{ who }} {{ digits + 1 }} {{ greeting }} {{ whole.items[1] }}" }
    next: [{ step: each }]
  - step: each
    loop: { in: "{{ secret.items }}" }
    tool: { kind: shell, name: each, cmd: "{{ item }} {{ use.text }}" }
`);
  assertNowhere(bench);
  assert.ok(!JSON.stringify(bench.executions().map(({ events }) => events)).includes("51005100"));
  const used = bench.calls.slice(1).map(({ config }) => config["cmd"]);
  assert.deepEqual(used, [
    `${CANARY} 51005101 Dear ${CANARY} ${CANARY}-2`,
    `${CANARY}-1 it was ${CANARY}`,
    `${CANARY}-2 it was ${CANARY}`,
  ]);
  assert.equal(ran.state.steps["never"]?.status, "SKIPPED");
});

test("sensitive results that are joined stay sensitive as a whole", async (t) => {
  const answers = [1, 2, 3].map((page) => ok({ page, rows: [`${CANARY}-${page}`], [`key${page}`]: CANARY }));
  for (const strategy of ["append", "concat", "merge", "replace"]) {
    const bench = setup(t, { tools: { secret: [...answers], use: [ok({})] } });
    const joined = `spec: { result: { sensitive: true, accumulate: { strategy: ${strategy}${strategy === "concat" ? ", merge_path: $.rows" : ""} } } }`;
    await bench.completed(`
workflow:
  - step: each
    ${joined}
    loop: { in: 3 }
    tool: { kind: http, name: secret }
    next: [{ step: use }]
  - { step: use, tool: { kind: shell, name: use, cmd: "{{ each.results | tojson }}" } }
`);
    assertNowhere(bench);
    assert.ok(String(bench.calls.at(-1)?.config["cmd"]).includes(`${CANARY}-3`), strategy);
  }
});

test("a result that is not called sensitive does stand in its event", async (t) => {
  const bench = setup(t, { tools: { secret: [ok({ token: CANARY })] } });
  await bench.completed("workflow: [{ step: a, tool: { kind: http, name: secret } }]");
  assert.throws(() => assertNowhere(bench), /task\.done/);
});
