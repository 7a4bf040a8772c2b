import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { availableParallelism, loadavg } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { createClient } from "../faults/support/client.ts";
import { LONG, openStand } from "../faults/support/stand.ts";
import { slowness } from "../support/machine-speed.ts";
import { sampleOf } from "./support/sample.ts";

/*
 * Documents that are made to keep the server from all other calls. Health must go on answering while each of them is tried. Each keeps a
 * server busy for as long as it is let, so a run tries a third of them, in each run others (support/sample.ts).
 */

/**
 * Longest time in which health may answer. What the machine does beside it counts too: so it is held where the machine has nothing else
 * to do, and told where it is busy. What the server itself does is held everywhere ({@link STRETCH_MS}).
 */
const HEALTH_MS = 250;
const [load = 0] = loadavg();
const HEALTH_HELD_MS = load < availableParallelism() ? HEALTH_MS : Number.POSITIVE_INFINITY;
/** A document does each time what it does; the machine's other work does not. */
const TRIES = 3;
/** Longest that the server may work without a pause, ms of processor time, on a machine of usual speed. The longest took 135. */
const STRETCH_MS = 200 * slowness();

const SPIN = "{% for a in range(900000) %}{% if a < 0 %}x{% endif %}{% endfor %}";
const SORT = "(range(900000) | map('string') | sort | length) > 0";
const TEXT = "('a' * 900000) ~ 'b'";
const many = (count: number, what: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => what(index));
const quoted = (text: string) => JSON.stringify(text);

const document = (name: string, start: string, more = "", workload = "{}") => `apiVersion: flow/v2
kind: Playbook
metadata: {name: ${name}, path: hostile/${name}}
workload: ${workload}
workflow:
  - step: start
    tool: {kind: noop}
${start}
${more}
`;
const nexts = many(100, (index) => `  - {step: s${index}, tool: {kind: noop}}`).join("\n");
const arcs = (when: (index: number) => string) =>
  `    next:\n      spec: {mode: inclusive}\n      arcs:\n${many(100, (index) => `        - {step: s${index}, when: ${quoted(when(index))}}`).join("\n")}`;
const toAll = `    next:\n      spec: {mode: inclusive}\n      arcs: [${many(100, (index) => `{step: s${index}}`).join(", ")}]`;
const nextsWith = (more: string) =>
  many(100, (index) => `  - {step: s${index}, tool: {kind: noop}, ${more}}`).join("\n");

/** A map of so many keys, as a step's result. */
const table = (keys: number) =>
  `  - step: start\n    tool: {kind: python, code: "def main():\\n    return {'k%d' % i: i for i in range(${keys})}"}\n`;
const afterTable = (keys: number, more: string) => `${table(keys)}${more}\n  - {step: a, tool: {kind: noop}}`;
const playbook = (name: string, workflow: string) =>
  `apiVersion: flow/v2\nkind: Playbook\nmetadata: {name: ${name}, path: hostile/${name}}\nworkflow:\n${workflow}\n`;
const listed = (count: number, what: (index: number) => string) => many(count, what).join(", ");

/** Documents that end in another way than by the budget of decisions: what they cost is bounded otherwise. */
const HEAVY: Readonly<Record<string, string>> = {
  filters: playbook("filters", `  - {step: start, tool: {kind: noop, value: "x${"{{a|uper}}".repeat(30_000)}"}}`),
  texts: document("texts", `    set: {ctx.a: "${"{{ 1 }}".repeat(30_000)}"}`),
  many_arcs: document(
    "many_arcs",
    `    next: {spec: {mode: inclusive}, arcs: [${listed(3_000, (index) => `{step: a, when: '{{ ${index} < 0 }}'}`)}]}`,
    "  - {step: a, tool: {kind: noop}}",
  ),
  many_rules: document(
    "many_rules",
    `    spec: {policy: {admit: {rules: [${listed(3_000, (index) => `{when: '{{ ${index} < 0 }}', then: {allow: false}}`)}]}}}`,
  ),
  fan_out: document(
    "fan_out",
    `    next: {spec: {mode: inclusive}, arcs: [${listed(500, (index) => `{step: f${index}}`)}]}`,
    many(500, (index) => `  - {step: f${index}, tool: {kind: noop}, next: {arcs: [{step: join}]}}`).join("\n") +
      "\n  - {step: join, tool: {kind: noop}}",
  ),
  workloads: document("workloads", "", "", `{${listed(10_000, (index) => `k${index}: '{{ ${index} }}'`)}}`),
  // Steps that the server runs itself: each as dear as a step may be there, and more of them than one round has.
  dear_steps: playbook(
    "dear_steps",
    `  - step: start\n    loop: {in: 500, iterator: i, spec: {mode: parallel}}\n    tool: {kind: noop, result: {t: ${quoted("{{ range(6000) | map('string') | sort | length }}")}}}`,
  ),
  too_dear_steps: playbook(
    "too_dear_steps",
    `  - step: start\n    loop: {in: 300, iterator: i, spec: {mode: parallel}}\n    tool: {kind: noop, result: {t: ${quoted("{{ range(20000) | map('string') | sort | length }}")}}}`,
  ),
  loop: document("loop", "    loop: {in: '{{ range(3000) | list }}', iterator: i, spec: {mode: parallel}}"),
};

const HOSTILE: Readonly<Record<string, string>> = {
  ...HEAVY,
  passing: playbook(
    "passing",
    afterTable(
      200_000,
      `    next: {spec: {mode: inclusive}, arcs: [${listed(20, () => "{step: a, args: {all: '{{ start }}'}}")}]}`,
    ),
  ),
  truth: playbook(
    "truth",
    afterTable(
      200_000,
      `    next: {spec: {mode: inclusive}, arcs: [${listed(500, () => "{step: a, when: '{{ not start }}'}")}]}`,
    ),
  ),
  growth: document(
    "growth",
    "    set: {ctx.a: '{{ range(50) | list }}'}\n    next: {arcs: [{step: g0}]}",
    `${many(
      20,
      (index) =>
        `  - {step: g${index}, tool: {kind: noop}, set: {ctx.a: '{{ [ctx.a, ctx.a] }}'}, next: {arcs: [{step: g${index + 1}}]}}`,
    ).join("\n")}\n  - {step: g20, tool: {kind: noop}}`,
  ),
  arcs: document(
    "arcs",
    arcs((index) => `{{ ${SORT} and ${index} < 0 }}`),
    nexts,
  ),
  blocks: document(
    "blocks",
    arcs(() => SPIN),
    nexts,
  ),
  sets: document("sets", `    set: {${many(100, (index) => `ctx.v${index}: ${quoted(`{{ ${TEXT} }}`)}`).join(", ")}}`),
  admissions: document(
    "admissions",
    toAll,
    nextsWith(`spec: {policy: {admit: {rules: [{when: ${quoted(`{{ not (${SORT}) }}`)}, then: {allow: true}}]}}}`),
  ),
  guards: document("guards", toAll, nextsWith(`when: ${quoted(`{{ not (${SORT}) }}`)}`)),
  loops: document(
    "loops",
    toAll,
    nextsWith(`loop: {in: ${quoted("{{ range(900000) | map('string') | list }}")}, iterator: i}`),
  ),
  words: document(
    "words",
    `    set: {ctx.a: ${quoted("{% for i in range(900) %}{{ (('ab ' * 300000) | title).split() | length }}{% endfor %}")}}`,
  ),
  search: document(
    "search",
    arcs(() => "{{ (('a' * 700) ~ 'b') in ('a' * 900000) }}"),
    nexts,
  ),
  nested: document(
    "nested",
    arcs(() => `${"{% for a in range(9) %}".repeat(30)}x${"{% endfor %}".repeat(30)}`),
    nexts,
  ),
  circle: document(
    "circle",
    "    next: {arcs: [{step: a}]}",
    "  - {step: a, when: '{{ false }}', tool: {kind: noop}, next: {arcs: [{step: b}]}}\n  - {step: b, when: '{{ false }}', tool: {kind: noop}, next: {arcs: [{step: a}]}}",
  ),
};

/** Pause between two calls for health: a server that works for long without one keeps such a call waiting nearly as long. */
const ASKED_EVERY_MS = 20;

/** Asks for health again and again until it is stopped; gives the longest time that an answer took. */
function watchHealth(t: TestContext, url: string) {
  let isOver = false;
  let longest = 0;
  const asking = (async () => {
    while (!isOver) {
      const began = performance.now();
      const response = await fetch(`${url}/api/health`);
      await response.arrayBuffer();
      assert.equal(response.status, 200);
      longest = Math.max(longest, performance.now() - began);
      // Calls without a pause would be most of what the server does.
      await setTimeout(ASKED_EVERY_MS);
    }
  })();
  t.after(() => {
    isOver = true;
  });
  return async () => {
    isOver = true;
    await asking;
    return longest;
  };
}

/** How long health takes at the most while nothing happens: what the machine's other work adds. */
async function idle(t: TestContext, url: string): Promise<number> {
  const stop = watchHealth(t, url);
  for (let asked = 0; asked < 100; asked += 1) await (await fetch(`${url}/api/health`)).arrayBuffer();
  return await stop();
}

/** A server that writes down for how long it works without a pause; `longest` gives the longest such time since it was last asked. */
async function measured(t: TestContext) {
  const stand = await openStand(t, LONG);
  const file = join(stand.folder, "stretches");
  const preload = new URL("./support/stretches.js", import.meta.url).href;
  const settings = { NODE_OPTIONS: `--import=${preload}`, STRETCHES_FILE: file, FLOW_PURE_STEPS: "server" };
  const server = await stand.server(settings);
  const longest = async () => {
    const lines = await readFile(file, "utf8").catch(() => "");
    await writeFile(file, "");
    return Math.max(0, ...lines.split("\n").map(Number));
  };
  return { stand, server, longest };
}

test("hostile documents end, and the server never works for long without a pause; health answers within 250 ms on a machine that is not busy", async (t) => {
  const { stand, server, longest: longestStretch } = await measured(t);
  const client = createClient(server.url);
  await stand.worker(server, "one");
  const attempt = async (each: TestContext, name: string, content: string) => {
    await longestStretch();
    const stop = watchHealth(each, server.url);
    await client.register(content);
    const id = await client.start(`hostile/${name}`, {});
    await client.watch(id);
    const longest = await stop();
    const { body } = await client.call("GET", `/api/executions/${id}`);
    const { error } = body as unknown as { error?: { code: string; message: string } };
    const stretch = await longestStretch();
    const expected = Object.hasOwn(HEAVY, name) ? ["COMPLETED", undefined] : ["FAILED", "DECISION_BUDGET"];
    assert.deepEqual([body.status, error?.code], expected, JSON.stringify(error));
    each.diagnostic(`the longest work without a pause ${stretch} ms, health ${Math.round(longest)} ms`);
    return stretch <= STRETCH_MS && longest <= HEALTH_HELD_MS;
  };
  const sample = sampleOf("hostile documents", { share: 1 / 3 });
  t.diagnostic(sample.told);
  const all = Object.entries(HOSTILE).map(([name, content]) => ({ name, content, isPlain: false }));
  for (const { name, content } of sample.of(all)) {
    await t.test(name, async (each) => {
      for (let tries = 1; !(await attempt(each, name, content)); tries += 1) assert.ok(tries < TRIES, `${TRIES} times`);
    });
  }
});

test("a workload whose defaults are too much together is refused at the start, and health answers meanwhile", async (t) => {
  const stand = await openStand(t, LONG);
  const server = await stand.server();
  const client = createClient(server.url);
  const workload = `{${many(100, (index) => `k${index}: ${quoted(`{{ ${SORT} }}`)}`).join(", ")}}`;
  await client.register(document("workload", "", "", workload));
  const limit = HEALTH_MS + (await idle(t, server.url));
  const stop = watchHealth(t, server.url);
  const { status, body } = await client.call("POST", "/api/execute", { path: "hostile/workload" });
  const longest = await stop();
  assert.deepEqual([status, body.code], [422, "DECISION_BUDGET"]);
  assert.ok(longest <= limit, `health took ${Math.round(longest)} ms`);
});
