import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createClient } from "../faults/support/client.ts";
import { LONG, openStand } from "../faults/support/stand.ts";

/* Documents that are made to keep the server from all other calls. Health must go on answering while each of them is tried. */

/** Longest time in which health may answer. */
const HEALTH_MS = 250;

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

const HOSTILE: Readonly<Record<string, string>> = {
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

test("each hostile document fails with DECISION_BUDGET, and health answers within 250 ms all the while", async (t) => {
  const stand = await openStand(t, LONG);
  const server = await stand.server();
  const client = createClient(server.url);
  await stand.worker(server, "one");
  for (const [name, content] of Object.entries(HOSTILE)) {
    // What a document does it does each time; what the machine's other work does it does not.
    for (let tries = 1; ; tries += 1) {
      const limit = HEALTH_MS + (await idle(t, server.url));
      const stop = watchHealth(t, server.url);
      await client.register(content);
      const id = await client.start(`hostile/${name}`, {});
      await client.watch(id);
      const longest = await stop();
      const { body } = await client.call("GET", `/api/executions/${id}`);
      const { error } = body as unknown as { error?: { code: string; message: string } };
      assert.deepEqual([body.status, error?.code], ["FAILED", "DECISION_BUDGET"], `${name}: ${JSON.stringify(error)}`);
      t.diagnostic(`${name}: health answered within ${Math.round(longest)} ms`);
      if (longest <= limit) break;
      assert.ok(tries < 3, `${name}: health took ${Math.round(longest)} ms, three times`);
    }
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
