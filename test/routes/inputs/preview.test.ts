import assert from "node:assert/strict";
import { before, test } from "node:test";
import { type Body, openApi, posted, TOKENS } from "../../support/service/api.ts";
import { workWith } from "../../support/service/api-work.ts";
import { addUser, allow } from "../../support/service/users.ts";

/* What a start would begin with. */

const api = await openApi();
const work = workWith(api);
const { sql } = api.database;

const SECRET = "pa55 of the supplier";
const textOf = (path: string, inputs: string, workload = "") =>
  `apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: n, path: ${path} }\n${inputs}${workload}workflow:\n  - { step: one, tool: { kind: noop } }\n`;
const INPUTS = `inputs:
  day: { type: string, format: date, required: true }
  password: { type: string, secret: true }
  url: { type: string, default: "https://example.org/{{ day | default('?') }}?key={{ password }}" }
`;
const PLAIN = 'workload: { who: world, text: "hello {{ who }} in {{ execution_id }}" }\n';

const preview = (body: Body) => work.post("/api/execute/preview", body);
const register = async (content: string) =>
  assert.equal((await work.post("/api/catalog/register", { content })).status, 200);

before(async () => {
  await register(textOf("p/declared", INPUTS));
  await register(textOf("p/plain", "", PLAIN.replace("hello", "bye")));
  await register(textOf("p/plain", "", PLAIN));
});

test("defaults and inputs are merged and rendered as a start does it; no id is used and nothing is written", async () => {
  const before = await sql`select count(*)::int as n from flow.execution`;
  const { status, body } = await preview({ path: "p/plain", workload: { who: "moon", wo: 1 } });
  assert.equal(status, 200, JSON.stringify(body));
  assert.deepEqual(body["workload"], { who: "moon", text: "hello moon in 0", wo: 1 });
  assert.deepEqual([body["path"], body["version"], body["problems"]], ["p/plain", 2, []]);
  assert.match(String(body["warnings"]), /wo.*did you mean.*who/);
  const { body: old } = await preview({ path: "p/plain", version: 1 });
  assert.deepEqual(old["workload"], { who: "world", text: "bye world in 0" });
  assert.deepEqual(await sql`select count(*)::int as n from flow.execution`, before);
  const id = await work.execute("p/plain", { workload: { who: "moon" } });
  const { body: started } = await work.get(`/api/executions/${id}`);
  assert.deepEqual(started["workload"], { who: "moon", text: `hello moon in ${id}` }, "as the start itself");
});

test("what is wrong with inputs stands beside what they come to; a secret in neither, nor what is made of it", async () => {
  const { status, body } = await preview({ path: "p/declared", workload: { day: "soon", password: SECRET, dya: 1 } });
  assert.equal(status, 200);
  assert.deepEqual(body["problems"], [
    { path: "dya", message: "is no input of it; did you mean 'day'?" },
    { path: "day", message: "must be a date such as 2026-01-31" },
  ]);
  const workload = body["workload"] as Body;
  assert.deepEqual([workload["day"], workload["password"]], ["soon", "[secret]"]);
  assert.match(String(workload["url"]), /^https:\/\/example\.org\/soon\?key=\[secret\]$/);
  assert.doesNotMatch(JSON.stringify(body), /pa55/);
  const { body: none } = await preview({ path: "p/declared" });
  assert.deepEqual(none["problems"], [{ path: "day", message: "is required" }]);
});

test("a text is previewed as a registered path is; what cannot be rendered, read or found is refused", async () => {
  const { body } = await preview({ content: textOf("p/draft", "", PLAIN) });
  assert.deepEqual([body["path"], body["version"]], ["p/draft", 0]);
  assert.deepEqual(body["workload"], { who: "world", text: "hello world in 0" });
  const cases: [number, RegExp, Body][] = [
    [422, /divides by zero/, { content: textOf("p/draft", "", 'workload: { broken: "{{ 1 / 0 }}" }\n') }],
    [
      422,
      /^Its start was not worked out: it has 1 error/,
      { content: textOf("p/draft", "").replace("workflow:", "workflow_:") },
    ],
    [
      422,
      /only playbooks run/,
      {
        content:
          "apiVersion: flow/v2\nkind: Mcp\nmetadata: { name: s, path: p/m }\nspec: { endpoint: http://127.0.0.1:9/mcp }\n",
      },
    ],
    [404, /not found/, { path: "p/nothing" }],
    [404, /not found/, { path: "p/plain", version: 3 }],
    [422, /needs `path`/, {}],
    [422, /needs `path`/, { path: "p/plain", content: textOf("p/plain", "") }],
    [422, /needs `path`/, { version: 1, content: textOf("p/plain", "") }],
    [422, /version/, { path: "p/plain", version: 0 }],
  ];
  for (const [status, message, asked] of cases) {
    const answer = await preview(asked);
    assert.equal(answer.status, status, JSON.stringify(answer.body));
    assert.match(String(answer.body["error"]), message);
  }
});

test("who may view a path may preview it; a text needs what running it needs, and is no line of the audit log", async () => {
  const as = async (can: ("modify" | "execute" | "view")[], body: Body) => {
    const user = await addUser(api.database);
    await allow(api.database, user, [{ allow: "p/**", can }]);
    const headers = { authorization: `Bearer ${TOKENS.operator}`, "x-flow-session": user.tokenSha256 };
    const { status } = await api.guarded.request("/api/execute/preview", posted(body, headers));
    return { user, status };
  };
  assert.equal((await as(["view"], { path: "p/plain" })).status, 200);
  assert.equal((await as(["execute"], { path: "p/plain" })).status, 403);
  assert.equal((await as(["view"], { path: "other" })).status, 403);
  const content = textOf("p/mine", "");
  assert.equal((await as(["view"], { content })).status, 403);
  assert.equal((await as(["view", "execute"], { content })).status, 403);
  assert.equal((await as(["view", "modify"], { content })).status, 403);
  const { user, status } = await as(["view", "modify", "execute"], { content });
  assert.equal(status, 200);
  const worker = posted({ path: "p/plain" }, { authorization: `Bearer ${TOKENS.worker}` });
  assert.equal((await api.guarded.request("/api/execute/preview", worker)).status, 403);
  await api.service.audit.close();
  const rows = await sql<{ action: string }[]>`select action from auth.audit_log where actor = ${user.email}`;
  assert.ok(
    rows.every(({ action }) => action === "playbook.view"),
    JSON.stringify(rows),
  );
});
