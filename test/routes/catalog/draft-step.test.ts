import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type Body, openApi, posted, TOKENS } from "../../support/service/api.ts";
import { type Claimed, workWith } from "../../support/service/api-work.ts";
import { addUser, allow } from "../../support/service/users.ts";

/* One step of a text that is not registered, with the inputs that it had in an execution. */

const api = await openApi();
const work = workWith(api);
const { sql } = api.database;

const load = (method = "POST") =>
  `{ kind: http, method: ${method}, url: "https://example.org/", json: { n: "{{ n }}", day: "{{ day }}", who: "{{ workload.who }}" } }`;
const stepsOf = (tool = load(), more = "") => `  - step: fetch
    tool: { kind: http, url: "https://example.org/{{ workload.who }}" }
    set: { ctx.n: "{{ (n | default(0)) + 1 }}" }
    next: { arcs: [{ step: load, set: { day: "{{ fetch.day }}" } }] }
  - step: load
    tool: ${tool}
    next: { arcs: [{ step: report }] }
  - step: report
    tool: { kind: python, code: "result = 1", input: { a: "{{ fetch.day }}" } }
${more}`;
const textOf = (path: string, steps = stepsOf()) =>
  `apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: n, path: ${path} }\nworkload: { who: world }\nworkflow:\n${steps}`;

before(() => work.register("s/one", stepsOf()));

const tested = (content: string, step: string, more: Body = {}, headers: Record<string, string> = {}) =>
  work.post("/api/execute/draft/step", { content, step, ...more }, headers);
const drafts = async () => Number((await sql`select count(*) as n from flow.draft`)[0]?.["n"]);
const error = ({ status, body }: { status: number; body: Body }) => `${status} ${String(body["error"])}`;

/** Claims the only command there is. */
async function claimed(step: string): Promise<Claimed> {
  const [command] = await work.claim("w");
  assert.equal(command?.step, step);
  return command as Claimed;
}

/** A run of the path, of which `fetch` answers this day. */
async function ran(day: string, path = "s/one", who = "world"): Promise<string> {
  const id = await work.execute(path, { workload: { who } });
  await work.finish("w", await claimed("fetch"), { day });
  await work.runToEnd(id);
  return id;
}

test("a step of the text runs alone, with what it had in the newest run, and counts as a draft", async () => {
  await ran("sunday");
  const id = await ran("monday", "s/one", "moon");
  const text = textOf("s/one", stepsOf(load("PUT")));
  const { status, body } = await tested(text, "load");
  assert.equal(status, 202, JSON.stringify(body));
  assert.deepEqual(
    [body["rerun_of"], body["path"], body["version"], body["reused"], body["will_run"]],
    [id, "s/one", 0, 1, ["load"]],
  );
  const command = await claimed("load");
  assert.equal(command.execution_id, body["execution_id"]);
  const { context } = command as unknown as { context: { vars: Body; input: Body; workload: Body } };
  assert.deepEqual(
    [context.vars, context.input, context.workload],
    [{ n: 1, day: "monday" }, { day: "monday" }, { who: "moon" }],
  );
  await work.finish("w", command, { put: true });
  const ended = await work.runToEnd(String(body["execution_id"]));
  assert.deepEqual([ended["status"], ended["version"], ended["rerun_of"]], ["COMPLETED", 0, id]);
  const ends = (ended["steps"] as Body[]).map(({ name, status, reused_from }) => [
    name,
    reused_from ? "reused" : status,
  ]);
  assert.deepEqual(ends, [
    ["fetch", "reused"],
    ["load", "COMPLETED"],
    ["report", "SKIPPED"],
  ]);
  const entry = await work.get(`/api/catalog/entries/${ended["catalog_id"]}`);
  assert.deepEqual([entry.body["version"], entry.body["content"]], [0, text]);
  const { body: line } = await work.get(`/api/executions/${id}/lineage`);
  const [rerun] = line["descendants"] as Body[];
  assert.deepEqual([rerun?.["execution_id"], rerun?.["version"], rerun?.["by"]], [body["execution_id"], 0, "rerun"]);
  // The next test takes its inputs from the run, and not from this test.
  const { body: again } = await tested(text, "load", { dry_run: true });
  assert.equal(again["rerun_of"], id);
});

test("an execution can be chosen; one that took the step over leads to the one that ran it", async () => {
  const old = await ran("tuesday");
  await ran("friday");
  const { body: chosen } = await tested(textOf("s/one"), "load", { execution_id: old });
  const command = await claimed("load");
  assert.deepEqual((command as unknown as { context: { input: Body } }).context.input, { day: "tuesday" });
  await work.finish("w", command);
  await work.runToEnd(String(chosen["execution_id"]));
  const { body: later } = await work.post(`/api/executions/${old}/rerun`, { from: ["report"] });
  await work.runToEnd(String(later["execution_id"]));
  const { body } = await tested(textOf("s/one"), "load", {
    execution_id: String(later["execution_id"]),
    dry_run: true,
  });
  assert.deepEqual([body["rerun_of"], body["will_run"]], [old, ["load"]]);
});

test("the plan says what the step does elsewhere, and nothing is begun or kept", async () => {
  await ran("monday");
  const before = await drafts();
  const { status, body } = await tested(textOf("s/one"), "load", { dry_run: true });
  assert.equal(status, 200, JSON.stringify(body));
  assert.equal(body["execution_id"], undefined);
  assert.deepEqual(body["steps"], [
    { step: "fetch", action: "reuse", kind: "http", effect: null, protected_by: null },
    { step: "load", action: "run", kind: "http", effect: "sends POST", protected_by: null },
  ]);
  const reading = await tested(textOf("s/one", stepsOf(load("GET"))), "load", { dry_run: true });
  assert.equal((reading.body["steps"] as Body[])[1]?.["effect"], null, "of the text, and not of the version that ran");
  assert.equal(await drafts(), before);
  assert.deepEqual(await work.claim("w", 1, 0), []);
});

test("what cannot be tested is refused with which and what next, and nothing is kept of it", async () => {
  const id = await ran("monday");
  const before = await drafts();
  const more = "  - step: extra\n    tool: { kind: noop }\n    next: { arcs: [{ step: fetch }] }\n";
  const text = textOf("s/one", stepsOf(load(), more));
  const cases: [RegExp, Parameters<typeof tested>][] = [
    [/^422 The text of 's\/one' has no step 'laod'; its steps are: fetch, load, report$/, [textOf("s/one"), "laod"]],
    [
      /^404 Step 'extra' has not run in any of the last 20 executions of 's\/one'.* Run the draft up to it/,
      [text, "extra"],
    ],
    [
      new RegExp(
        `^422 The step was not run: execution ${id} never reached 'extra'.* Name an execution that did, or run the draft`,
      ),
      [text, "extra", { execution_id: id }],
    ],
    [
      /^422 .* has results of 'fetch', which the text does not have, or has as steps of another kind\. Name/,
      [textOf("s/one", stepsOf().replace("{ kind: http, url", "{ kind: shell, cmd")), "load", { execution_id: id }],
    ],
    [
      /^422 .*has results of 'fetch'/,
      [textOf("s/one", stepsOf().replaceAll("fetch", "get")), "load", { execution_id: id }],
    ],
    [/^404 Execution 999 does not exist/, [textOf("s/one"), "load", { execution_id: "999" }]],
    [/^422 Execution \d+ is of 's\/one', and the text is of 's\/two'/, [textOf("s/two"), "load", { execution_id: id }]],
    [/^404 Step 'load' has not run .* executions of 's\/two'/, [textOf("s/two"), "load"]],
    [
      /^422 The step was not run: it has 1 error/,
      [textOf("s/one").replace("step: report }", "step: nowhere }"), "load"],
    ],
    [/^422 The body/, [textOf("s/one"), ""]],
    [/^422 The body/, [textOf("s/one"), "load", { from: ["load"] }]],
  ];
  for (const [expected, call] of cases) assert.match(error(await tested(...call)), expected);
  assert.equal(await drafts(), before);
});

test("an execution that has not ended, and one that is deleted, cannot be taken", async () => {
  const open = await work.execute("s/one");
  assert.equal((await tested(textOf("s/one"), "fetch", { execution_id: open })).body["code"], "not_terminal");
  await work.runToEnd(open);
  assert.equal((await api.open.request(`/api/executions/${open}`, { method: "DELETE" })).status, 200);
  assert.match(
    error(await tested(textOf("s/one"), "fetch", { execution_id: open })),
    /^404 Execution \d+ does not exist/,
  );
});

test("a call that is repeated under its key runs once; the same key with another step is refused", async () => {
  const id = await ran("monday");
  const before = await drafts();
  const key = { "idempotency-key": "step-1" };
  const first = await tested(textOf("s/one"), "load", {}, key);
  const again = await tested(textOf("s/one"), "load", {}, key);
  assert.deepEqual(
    [again.status, again.body["execution_id"], again.body["duplicate"], again.body["rerun_of"]],
    [202, first.body["execution_id"], true, id],
  );
  assert.equal((await tested(textOf("s/one"), "report", {}, key)).status, 422);
  assert.equal(await drafts(), before + 1);
  await work.runToEnd(String(first.body["execution_id"]));
});

test("a declared secret of the run stays sealed, and the step of the text can read it", async () => {
  const secret = "the key to the vault";
  const declared = (result: string) =>
    `apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: n, path: s/secret }\ninputs: { key: { type: string, secret: true } }\nworkflow:\n  - { step: use, tool: { kind: noop, result: ${result} } }\n`;
  assert.equal((await work.post("/api/catalog/register", { content: declared("one") })).status, 200);
  const id = await work.execute("s/secret", { workload: { key: secret } });
  await work.runToEnd(id);
  const { body } = await tested(declared(`{ is: "{{ key == '${secret}' }}" }`), "use");
  assert.equal(body["rerun_of"], id, JSON.stringify(body));
  const begun = String(body["execution_id"]);
  const ended = await work.runToEnd(begun);
  assert.deepEqual([ended["status"], ended["workload"]], ["COMPLETED", { key: "[secret]" }]);
  const rows = await sql<{ text: string }[]>`
    select l::text as text from flow.event_log l where execution_id = ${begun}
    union all select e::text from flow.execution e where execution_id = ${begun}`;
  for (const { text } of rows) assert.ok(!text.includes(secret), text);
});

test("who tests a step needs to change and to execute the path; the test is in the audit log", async () => {
  const id = await ran("monday");
  const as = async (can: ("modify" | "execute" | "view")[], allowed: string, more: Body = {}, path = "s/one") => {
    const user = await addUser(api.database);
    await allow(api.database, user, [{ allow: allowed, can }]);
    const headers = { authorization: `Bearer ${TOKENS.operator}`, "x-flow-session": user.tokenSha256 };
    const body = { content: textOf(path), step: "load", ...more };
    const answer = await api.guarded.request("/api/execute/draft/step", posted(body, headers));
    return { user, status: answer.status, body: (await answer.json()) as Body };
  };
  assert.equal((await as(["execute", "view"], "s/**")).status, 403);
  assert.equal((await as(["modify", "view"], "s/**")).status, 403);
  assert.equal((await as(["modify", "execute"], "other/**")).status, 403);
  // Of another path nothing is said to who may not run it.
  const foreign = await as(["modify", "execute"], "mine/**", { execution_id: id }, "mine/one");
  assert.deepEqual([foreign.status, foreign.body["code"]], [403, "FORBIDDEN"]);
  const { user, status, body } = await as(["modify", "execute"], "s/**");
  assert.equal(status, 202, JSON.stringify(body));
  const worker = posted({ content: textOf("s/one"), step: "load" }, { authorization: `Bearer ${TOKENS.worker}` });
  assert.equal((await api.guarded.request("/api/execute/draft/step", worker)).status, 403);
  await api.service.audit.close();
  const rows = await sql<{ action: string; resource: string; id: string | null; detail: Body }[]>`
    select action, resource, execution_id as id, detail from auth.audit_log
    where actor = ${user.email} and result = 'allow' order by action`;
  const begun = String(body["execution_id"]);
  assert.deepEqual(
    rows.map(({ action, resource, id: of, detail }) => [action, resource, of ?? detail["execution_id"]]),
    [
      ["execution.test_step", `execution/${id}`, begun],
      ["playbook.execute", "playbook/s/one", begun],
      ["playbook.modify", "playbook/s/one", begun],
    ],
  );
  assert.equal(rows[0]?.detail["step"], "load");
  await work.runToEnd(begun);
});
