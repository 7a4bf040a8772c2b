import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import { setup } from "../support/bench.ts";

// Language document, section 9: `keychain.<name>.<field>` of templates.

function reading(keychain: string, expression: string): string {
  return `
workload: { region: eu, names: { api: prod_api } }
keychain:
${keychain}
workflow:
  - step: a
    tool: { kind: http, url: "{{ ${expression} }}" }
`;
}

const CREDENTIALS = {
  prod_api: { type: "bearer", data: { token: "of prod_api" } },
  pg: { type: "sqldb", data: { db_host: "h" } },
  gcs_credential: { type: "custom", data: { key: "k" } },
};

for (const [entry, expression, expected] of [
  ["{ name: k, kind: static, data: { token: x } }", "keychain.k.token", "x"],
  ["{ name: k, kind: static, map: { token: '{{ region }}' } }", "keychain.k.token", "eu"],
  ["{ name: pg, kind: credential }", "keychain.pg.db_host", "h"],
  ["{ name: k, kind: credential, credential: '{{ workload.names.api }}' }", "keychain['k'].token", "of prod_api"],
  ["{ name: k, kind: bearer, auth: prod_api }", "keychain.k.token", "of prod_api"],
  ["{ name: k, kind: gcs_credential, auth: gcs_credential }", "keychain.k", { key: "k" }],
] as const) {
  test(`the entry ${entry} read by ${expression}`, async (t) => {
    const { completed, calls } = setup(t, { credentials: CREDENTIALS });
    await completed(reading(`  - ${entry}`, expression));
    assert.deepEqual(calls[0]?.config["url"], expected);
  });
}

test("an entry's templates read earlier entries, and not later ones", async (t) => {
  const first = "  - { name: first, kind: static, data: { host: h } }";
  const second = "  - { name: second, kind: static, data: { url: 'http://{{ keychain.first.host }}/' } }";
  const good = setup(t);
  await good.completed(reading(`${first}\n${second}`, "keychain.second.url"));
  assert.equal(good.calls[0]?.config["url"], "http://h/");
  const { state } = await setup(t).failed(reading(`${second}\n${first}`, "keychain.second.url"));
  assert.match(state.error?.message ?? "", /KEYCHAIN: Entry 'second' not found: .*Entry 'first' not found/);
});

test("an entry is resolved when something reads it, not before", async (t) => {
  const asked: string[] = [];
  const find = (name: string) => {
    asked.push(name);
    return Promise.resolve({ name, type: "bearer", data: { token: name } });
  };
  const { completed } = setup(t, { credentials: { find } });
  await completed(
    reading("  - { name: used, kind: credential }\n  - { name: unused, kind: credential }", "keychain.used.token"),
  );
  assert.deepEqual(asked, ["used"]);
});

for (const [what, keychain, expression, message] of [
  [
    "is not defined",
    "  - { name: k, kind: static, data: {} }",
    "keychain.other.token",
    /^KEYCHAIN: Entry 'other' not found/,
  ],
  [
    "has no such field",
    "  - { name: k, kind: static, data: { token: x } }",
    "keychain.k.secret",
    /^KEYCHAIN: Entry 'k' has no field 'secret'; it has: token/,
  ],
  [
    "names no credential",
    "  - { name: k, kind: credential, credential: nobody }",
    "keychain.k.token",
    /^KEYCHAIN: Entry 'k' not found: there is no credential 'nobody'/,
  ],
  [
    "is static and empty",
    "  - { name: k, kind: static }",
    "keychain.k.token",
    /^KEYCHAIN: Entry 'k' not found: a static entry needs 'data'/,
  ],
  [
    "is of a kind that is not resolved here",
    "  - { name: k, kind: oauth2 }",
    "keychain.k.token",
    /KEYCHAIN: Entry 'k' not found: nothing here resolves kind 'oauth2'/,
  ],
  [
    "is read as a whole keychain",
    "  - { name: k, kind: static, data: {} }",
    "keychain",
    /can only be read field by field/,
  ],
] as const) {
  test(`an entry that ${what} fails the task that reads it`, async (t) => {
    const { failed, calls } = setup(t, { credentials: CREDENTIALS });
    const { state } = await failed(reading(keychain, expression));
    assert.deepEqual([state.error?.kind, state.error?.code], ["template", "KEYCHAIN"]);
    assert.match(state.error?.message ?? "", message);
    assert.equal(calls.length, 0);
  });
}

test("an entry that cannot be resolved fails no other", async (t) => {
  const { completed } = setup(t, { credentials: CREDENTIALS });
  const ran = await completed(`
keychain: [{ name: bad, kind: credential, credential: nobody }, { name: good, kind: static, data: { n: 1 } }]
workflow:
  - step: a
    tool:
      - one: { kind: noop, result: { n: "{{ keychain.bad.n }}" }, spec: { policy: { rules: [{ else: { then: { do: continue } } }] } } }
      - two: { kind: noop, result: { n: "{{ keychain.good.n }}" } }
`);
  assert.equal(((await ran.step("a")) as JsonObject)["n"], 1);
});
