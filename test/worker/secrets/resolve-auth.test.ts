import assert from "node:assert/strict";
import { test } from "node:test";
import { setup } from "../support/bench.ts";
import { ok } from "../support/scripted-tools.ts";

// Language document, section 9: which credentials a task's `auth` gives its tool.

const CREDENTIALS = {
  pg: { type: "sqldb", data: { db_host: "h" } },
  api: { type: "bearer", data: { token: "t" } },
};
// What stands in the playbook is not stored: some hosts are reached with a stored credential alone.
const PG = { name: "pg", ...CREDENTIALS.pg, isStored: true };
const API = { name: "api", ...CREDENTIALS.api, isStored: true };
const SCOPED = { name: "api", type: "bearer", data: { token: "t", scopes: ["a"] }, isStored: true };
const BEARER = { name: "inline", type: "bearer", data: { type: "bearer", token: "x" } };
const ADC = { name: "inline", type: "custom", data: { source: "adc", scopes: ["a"] } };

for (const [auth, expected] of [
  ["pg", { pg: PG, default: PG }],
  ['"{{ which }}"', { pg: PG, default: PG }],
  ["{ credential: pg, type: sqldb }", { pg: PG, default: PG }],
  ["{ from: pg, to: { credential: api } }", { from: PG, to: API }],
  ["{ only: pg }", { only: PG, default: PG }],
  ["{ type: bearer, token: x }", { inline: BEARER, default: BEARER }],
  ["{ source: adc, scopes: [a] }", { inline: ADC, default: ADC }],
  // A map from kinds to credentials: each tool has its own, whatever the kind is called.
  ["{ http: api, postgres: nobody }", { http: API, default: API }],
  ["{ http: api, other: pg }", { http: API, other: PG, default: API }],
  ["{ credential: api, scopes: [a] }", { api: SCOPED, default: SCOPED }],
  ["null", {}],
  ['""', {}],
] as const) {
  test(`auth: ${auth}`, async (t) => {
    const { completed, calls } = setup(t, { credentials: CREDENTIALS });
    await completed(`
workload: { which: pg }
workflow:
  - step: a
    tool: { kind: http, auth: ${auth} }
`);
    assert.deepEqual(calls[0]?.auth, expected);
    assert.equal(calls[0]?.config["auth"], undefined, "The tool reads credentials, not names");
  });
}

test("credential is auth by its older name", async (t) => {
  const { completed, calls } = setup(t, { credentials: CREDENTIALS });
  await completed("workflow: [{ step: a, tool: { kind: http, credential: api } }]");
  assert.deepEqual(calls[0]?.auth["default"], API);
});

for (const auth of ["nobody", "{ credential: nobody }", "{ a: pg, b: nobody }"]) {
  test(`auth: ${auth} fails the task, naming the credential and what to do`, async (t) => {
    const { failed, calls } = setup(t, { credentials: CREDENTIALS });
    const { state } = await failed(`workflow: [{ step: a, tool: { kind: http, auth: ${auth} } }]`);
    assert.deepEqual([state.error?.kind, state.error?.code], ["configuration", "NOT_FOUND"]);
    assert.match(state.error?.message ?? "", /There is no credential 'nobody'; .*FLOW_CREDENTIALS_FILE/);
    assert.equal(calls.length, 0);
  });
}

test("auth that is neither a name nor a map fails the task", async (t) => {
  const { failed } = setup(t);
  const { state } = await failed('workflow: [{ step: a, tool: { kind: http, auth: "{{ [1] }}" } }]');
  assert.match(state.error?.message ?? "", /'auth' must be the name of a credential, or a map/);
});

test("a credential's data stands in no event", async (t) => {
  const { completed } = setup(t, {
    credentials: { api: { type: "bearer", data: { token: "canary-7f3a" } } },
    tools: { a: [ok({})] },
  });
  const ran = await completed("workflow: [{ step: a, tool: { kind: http, auth: api } }]");
  assert.ok(!JSON.stringify(ran.events).includes("canary-7f3a"));
});
