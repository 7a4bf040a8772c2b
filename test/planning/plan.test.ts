import assert from "node:assert/strict";
import { test } from "node:test";
import { compileProgram } from "../../src/engine/program/program.ts";
import { loadPlaybook } from "../../src/language/load/load.ts";
import type { Rendered } from "../../src/language/template/render-known.ts";
import { planRun } from "../../src/planning/plan.ts";
import type { Plan, PlannedStep } from "../../src/planning/planned.ts";
import { isJsonObject, type JsonObject } from "../../src/schema/words/json.ts";

/** Plans a playbook of which `text` is all that follows the header; nothing is on the machine but `http` and `noop`. */
async function plan(text: string, request: JsonObject = {}): Promise<Plan> {
  const document = `apiVersion: demo/v2\nkind: Playbook\nmetadata: {name: main}\n${text}`;
  const { playbook, diagnostics } = loadPlaybook(document, "main.yaml");
  assert.ok(playbook, JSON.stringify(diagnostics));
  return await planRun({ program: compileProgram(playbook), file: "main.yaml", warnings: diagnostics }, request, {
    credential: (name) => Promise.resolve({ found: name === "there", ...(name === "there" && { type: "bearer" }) }),
    kind: (kind) => Promise.resolve({ available: kind === "http" || kind === "noop" }),
    playbook: (path) => Promise.resolve({ found: path === "child" }),
  });
}

function stepOf({ steps }: Plan, name: string): PlannedStep {
  const found = steps.find((step) => step.name === name);
  assert.ok(found, `there is no step ${name}`);
  return found;
}

function fieldsOf(rendered: Rendered | undefined): JsonObject {
  assert.ok(isJsonObject(rendered?.value));
  return rendered.value;
}

const ONE_TASK = (config: string) => `workflow:\n  - {step: a, tool: {kind: http, ${config}}}\n`;

test("what depends on inputs alone is rendered, with its native type", async () => {
  const made = await plan(
    `workload: {host: x, url: "http://{{ host }}", n: 2}\n${ONE_TASK('url: "{{ url }}/{{ n }}", json: {n: "{{ n * 2 }}"}')}`,
  );
  const [task] = stepOf(made, "a").tasks;
  assert.deepEqual(task?.config, { value: { url: "http://x/2", json: { n: 4 } } });
});

test("the request's inputs win, also in the defaults that are made of them, and are no templates themselves", async () => {
  const made = await plan(
    `workload: {host: x, url: "http://{{ host }}"}\n${ONE_TASK('url: "{{ url }}", b: "{{ raw }}"')}`,
    {
      host: "y",
      raw: "{{ host }}",
    },
  );
  assert.deepEqual(stepOf(made, "a").tasks[0]?.config.value, { url: "http://y", b: "{{ host }}" });
});

test("what a result will give stands as written, with the names that it waits for", async () => {
  const made = await plan(`workload: {host: x}
workflow:
  - {step: a, tool: {kind: http, url: http://x}, set: {seen: 1}, next: {arcs: [{step: b, set: {page: 3}}]}}
  - step: b
    loop: {in: "{{ a.data.users }}", iterator: user}
    tool: {kind: http, url: "http://{{ host }}/{{ user.id }}/{{ page }}", json: {a: "{{ a.data }}", b: "{{ seen }}", c: "{{ steps.a }}", at: "{{ now() }}"}}
`);
  const config = stepOf(made, "b").tasks[0]?.config;
  assert.equal(fieldsOf(config)["url"], "http://x/{{ user.id }}/{{ page }}", "the known part is rendered");
  assert.deepEqual(config?.unknown, [
    { path: "url", waits_for: ["user", "page"] },
    { path: "json.a", waits_for: ["a"] },
    { path: "json.b", waits_for: ["seen"] },
    { path: "json.c", waits_for: ["a"] },
    { path: "json.at", waits_for: ["now()"] },
  ]);
  assert.deepEqual(stepOf(made, "b").loop?.in?.unknown, [{ path: "", waits_for: ["a"] }]);
});

test("a workload key that some step assigns is not taken for its default", async () => {
  const made = await plan(`workload: {page: 1}
workflow:
  - {step: a, tool: {kind: http, url: "http://x/{{ page }}"}, set: {page: "{{ page + 1 }}"}}
`);
  assert.deepEqual(stepOf(made, "a").tasks[0]?.config.unknown, [{ path: "url", waits_for: ["page"] }]);
});

test("inputs of a step and of a task are seen by what is rendered after them", async () => {
  const made = await plan(`workload: {n: 1}
keychain: [{name: k, kind: bearer}]
workflow:
  - step: a
    input: {n: 2, key: "{{ keychain.k.token }}"}
    tool: {kind: http, input: {m: "{{ n + 1 }}"}, url: "http://{{ n }}/{{ m }}/{{ key }}"}
`);
  assert.deepEqual(stepOf(made, "a").tasks[0]?.config.value, { url: "http://2/3/[secret]" });
  assert.deepEqual(stepOf(made, "a").input, { value: { n: 2, key: "[secret]" }, secret: ["key"] });
});

test("secrets are masked where they are read and in everything made of them", async () => {
  const made = await plan(
    `workload: {token: "{{ env.TOKEN }}", header: "Bearer {{ token }}", password: hunter2, db: {password: p, host: h}, open: 1}
keychain: [{name: k, kind: static, data: {v: CANARY}}]
workflow:
  - step: a
    when: "{{ token == 'x' }}"
    tool:
      kind: http
      url: "http://x?k={{ keychain.k.v }}&t={{ workload.header }}"
      json: {all: "{{ workload }}", ctx: "{{ ctx | tojson }}", p: "{{ password }}", call: "{{ token('x') }}", db: "{{ db.host }}", open: "{{ open }}"}
      headers: {Authorization: "Bearer abc", X-Api-Key: "{{ open }}"}
`,
    { api_key: "given" },
  );
  const task = stepOf(made, "a").tasks[0];
  assert.deepEqual(task?.config.value, {
    url: "http://x?k=[secret]&t=[secret]",
    json: { all: "[secret]", ctx: "[secret]", p: "[secret]", call: "[secret]", db: "[secret]", open: 1 },
    headers: { Authorization: "[secret]", "X-Api-Key": 1 },
  });
  assert.deepEqual(made.workload.value, {
    token: "[secret]",
    header: "Bearer [secret]",
    password: "[secret]",
    db: { password: "[secret]", host: "h" },
    open: 1,
    api_key: "[secret]",
  });
  assert.equal(stepOf(made, "a").guard?.value, undefined, "a secret decides nothing that is shown");
  assert.doesNotMatch(JSON.stringify(made), /CANARY|hunter2|given|Bearer abc/);
});

test("a template that fails is reported at its place, and the rest is planned", async () => {
  const made = await plan(`workload: {n: text}\n${ONE_TASK('url: "{{ n | keys }}", b: 1')}`);
  const config = stepOf(made, "a").tasks[0]?.config;
  assert.equal(config?.errors?.[0]?.path, "url");
  assert.equal(fieldsOf(config)["b"], 1);
});

test("loops say how often they run where that is known", async () => {
  const loop = async (collection: string) => {
    const made = await plan(
      `workload: {ids: [1, 2], map: {a: 1}, none: null}\nworkflow:\n  - {step: a, loop: {in: ${collection}}, tool: {kind: noop}}\n`,
    );
    const { count, in: over } = stepOf(made, "a").loop ?? {};
    return count ?? over?.errors?.[0]?.message ?? over?.unknown;
  };
  assert.equal(await loop('"{{ ids }}"'), 2);
  assert.equal(await loop('"{{ map }}"'), 1);
  assert.equal(await loop("7"), 7);
  assert.match(String(await loop('"{{ none }}"')), /collection of step 'a' is null/);
  assert.deepEqual(
    await loop('"{{ later }}"'),
    "the collection of step 'a' is null or undefined; 'loop.in' must give a list, a map, a text or a number",
  );
});

const BRANCHES = `
workload: {mode: fast}
workflow:
  - step: start
    next:
      spec: {mode: exclusive}
      arcs: [{step: slow, when: "{{ mode == 'slow' }}"}, {step: fast, when: "mode == 'fast'"}, {step: other}]
  - {step: fast, when: "{{ mode == 'never' }}", next: {arcs: [{step: failed, when: "event.name == 'step.failed'"}, {step: join}]}}
  - {step: slow, next: {arcs: [{step: only_slow}]}}
  - {step: only_slow, tool: {kind: shell, cmd: x}}
  - {step: other, tool: {kind: noop}}
  - {step: failed, next: {arcs: [{step: join}, {step: fast, when: "{{ again }}"}]}}
  - {step: join, tool: {kind: noop}}
  - {step: orphan, tool: {kind: noop}}
`;

test("arcs and guards that depend on inputs alone are decided, and what they exclude is not reached", async () => {
  const made = await plan(BRANCHES);
  const reached = Object.fromEntries(made.steps.map((step) => [step.name, step.reached]));
  assert.deepEqual(reached, {
    start: "yes",
    fast: "yes",
    failed: "yes",
    join: "yes",
    slow: "no",
    only_slow: "no",
    other: "no",
    orphan: "never",
  });
  assert.deepEqual(
    stepOf(made, "start").next?.arcs.map(({ fires }) => fires),
    ["no", "yes", "no"],
  );
  assert.deepEqual(stepOf(made, "fast").guard, { when: "{{ mode == 'never' }}", value: false });
  assert.deepEqual(
    stepOf(made, "fast").next?.arcs.map(({ fires }) => fires),
    ["maybe", "yes"],
  );
  assert.deepEqual(stepOf(made, "join").after, ["fast", "failed"]);
  assert.equal(stepOf(made, "failed").next?.arcs[1]?.back, true);
});

test("with other inputs another branch is reached, and only that one's needs are listed", async () => {
  const made = await plan(BRANCHES, { mode: "slow" });
  assert.deepEqual(
    made.steps.filter(({ reached }) => reached === "yes").map(({ name }) => name),
    ["start", "slow", "only_slow"],
  );
  assert.deepEqual(made.kinds, [
    { kind: "noop", used_by: ["start", "slow"], available: true },
    { kind: "shell", used_by: ["only_slow"], available: false },
  ]);
});

test("a join stands after all its branches, and the final step last", async () => {
  const made = await plan(`executor: {spec: {final_step: report}}
workflow:
  - {step: report, tool: {kind: noop}}
  - {step: join, tool: {kind: noop}}
  - {step: start, next: {spec: {mode: inclusive}, arcs: [{step: join}, {step: long}]}}
  - {step: long, next: {arcs: [{step: longer}]}}
  - {step: longer, next: {arcs: [{step: join}]}}
`);
  assert.deepEqual(
    made.steps.map(({ name }) => name),
    ["start", "long", "longer", "join", "report"],
  );
});

test("a target that is a template leaves every step reachable", async () => {
  const made = await plan(`workflow:
  - {step: start, next: {arcs: [{step: "{{ where }}"}]}}
  - {step: b, tool: {kind: noop}}
`);
  assert.equal(stepOf(made, "b").reached, "yes");
});

test("needs are credentials, keychain entries, kinds and sub-playbooks, found or not", async () => {
  const made = await plan(`workload: {env_name: prod}
keychain:
  - {name: api, kind: bearer, auth: there}
  - {name: fixed, kind: static, data: {v: 1}}
  - {name: unread, kind: bearer}
workflow:
  - step: a
    loop: {cursor: {kind: postgres, auth: queue, claim: "update q"}, iterator: row}
    tool:
      - one: {kind: http, url: "{{ keychain.api.token }}{{ keychain.fixed.v }}", auth: "pg_{{ env_name }}"}
      - two: {kind: http, url: x, auth: {left: there, right: {credential: gone}}}
      - three: {kind: http, url: x, auth: {type: bearer, token: inline}}
      - four: {kind: http, url: x, auth: "{{ row.auth }}"}
      - five: {kind: playbook, path: child}
      - six: {kind: playbook, path: "{{ row.path }}"}
      - seven: {kind: python, script: {uri: a.py, source: {type: http, endpoint: "https://x/", auth: scripts}}}
`);
  assert.deepEqual(
    made.credentials.map(({ name, found }) => [name, found]),
    [
      ["queue", false],
      ["pg_prod", false],
      ["there", true],
      ["gone", false],
      ["scripts", false],
    ],
  );
  assert.deepEqual(made.keychain, [
    { name: "api", kind: "bearer", credential: "there", used_by: ["a"] },
    { name: "fixed", kind: "static", used_by: ["a"] },
  ]);
  assert.deepEqual(made.playbooks, [{ path: "child", used_by: ["a"], found: true }]);
  assert.doesNotMatch(JSON.stringify(made), /inline/);
});

test("a keychain entry needs the credential that it names, and one that makes its own request needs none", async () => {
  const made = await plan(`keychain:
  - {name: vault, kind: secret_manager, provider: cloud_a, auth: there, map: {a: p}}
  - {name: crm, kind: oauth2, auth: {credential: gone}}
  - {name: own, kind: oauth2, endpoint: "https://x/token"}
  - {name: given, kind: bearer, token: "{{ env.TOKEN }}"}
  - {name: pg, kind: credential}
workflow:
  - step: a
    tool: {kind: http, url: "{{ keychain.vault.a }}{{ keychain.crm.a }}{{ keychain.own.a }}{{ keychain.given.token }}{{ keychain.pg.host }}"}
`);
  assert.deepEqual(
    made.keychain.map(({ name, credential }) => [name, credential]),
    [
      ["vault", "there"],
      ["crm", "gone"],
      ["own", undefined],
      ["given", undefined],
      ["pg", "pg"],
    ],
  );
});

test("the first step sees the request's inputs as input, a later one does not", async () => {
  const made = await plan(
    `workflow:
  - {step: a, tool: {kind: http, url: "{{ input.id }}"}, next: {arcs: [{step: b}]}}
  - {step: b, tool: {kind: http, url: "{{ input.id }}"}}
`,
    { id: 7 },
  );
  assert.deepEqual(stepOf(made, "a").tasks[0]?.config, { value: { url: 7 } });
  assert.deepEqual(stepOf(made, "b").tasks[0]?.config.unknown, [{ path: "url", waits_for: ["input"] }]);
});
