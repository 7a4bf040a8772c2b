import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import { credentialUses } from "../../../src/language/load/credential-uses.ts";
import type { JsonObject } from "../../../src/schema/words/json.ts";

const uses = (document: string) =>
  credentialUses(parse(document) as JsonObject).map(
    ({ credential, place, byDefault }) => `${credential} at ${place}${byDefault ? " by default" : ""}`,
  );

test("names are found in tasks of every form, cursors, fetched scripts, tools of the workbook and MCP resources", () => {
  const found = uses(`
workflow:
  - step: one
    tool: { kind: sqldb, auth: pg }
  - step: many
    loop: { cursor: { kind: sqldb, auth: { credential: rows }, claim: x } }
    tool:
      - { name: a, kind: http, credential: api }
      - query: { kind: sqldb, auth: { first: pg, second: { name: other } } }
  - step: script
    tool: { kind: python, script: { uri: x, source: { type: http, auth: files } } }
  - step: copy
    tool: { kind: transfer, source: { type: sqldb, auth: from }, target: { type: sqldb, auth: to } }
  - step: text
    tool: http
    auth: legacy
workbook:
  - { name: tool, tool: { kind: nats, auth: broker } }
spec: { endpoint: "https://x", auth: mcp }
`);
  assert.deepEqual(found.sort(), [
    "api at workflow[1].tool[0].credential",
    "broker at workbook[0].tool.auth",
    "files at workflow[2].tool.script.source.auth",
    "from at workflow[3].tool.source.auth",
    "legacy at workflow[4].auth",
    "mcp at spec.auth",
    "other at workflow[1].tool[1].query.auth.second.name",
    "pg at workflow[0].tool.auth",
    "pg at workflow[1].tool[1].query.auth.first",
    "rows at workflow[1].loop.cursor.auth.credential",
    "to at workflow[3].tool.target.auth",
  ]);
});

test("an entry of the keychain names what it is resolved with, or reads the credential of its own name", () => {
  const found = uses(`
keychain:
  - { name: vault, kind: secret_manager, provider: cloud_a, auth: reader, map: { a: b } }
  - { name: own_one, kind: bearer }
  - { name: typed, kind: sqldb_credential, credential: pg }
  - { name: fixed, kind: static, data: { auth: no } }
  - { name: given, kind: bearer, token: "{{ workload.t }}" }
  - { name: asked, kind: oauth2, endpoint: "https://x", headers: { a: "{{ token('signer') }}" } }
`);
  assert.deepEqual(found, [
    "reader at keychain[0].auth",
    "own_one at keychain[1].name",
    "pg at keychain[2].credential",
    "signer at keychain[5].headers.a",
  ]);
});

test("a default of the workload counts as a use; names known only during a run do not", () => {
  const found = uses(`
workload: { db: { auth: pg }, computed: "{{ env.X }}" }
workflow:
  - { step: a, tool: { kind: sqldb, auth: "{{ workload.db.auth }}" } }
  - { step: b, tool: { kind: sqldb, auth: "{{ workload.missing }}" } }
  - { step: c, tool: { kind: sqldb, auth: "{{ workload.computed }}" } }
  - { step: d, tool: { kind: sqldb, auth: "{{ 'p' ~ 'g' }}" } }
`);
  assert.deepEqual(found, ["pg at workflow[0].tool.auth by default"]);
});

test("an inline auth names none, and words of the author's data are no names", () => {
  const found = uses(`
metadata: { auth: no }
workload: { auth: no }
workflow:
  - step: a
    tool:
      kind: http
      auth: { type: bearer, token: x }
      body: { kind: thing, auth: no, credential: no }
      params: { auth: no }
  - { step: b, tool: { kind: mcp, auth: { source: adc }, arguments: { auth: no } } }
  - { step: c, tool: { kind: playbook, path: x, args: { auth: no } } }
  - { step: d, tool: { kind: http, auth: "" } }
`);
  assert.deepEqual(found, []);
});

test("a hostile document costs no more than it has places, and reaches no prototype", () => {
  let deep: JsonObject = { auth: "deep" };
  for (let depth = 0; depth < 5_000; depth += 1) deep = { inner: deep };
  assert.deepEqual(credentialUses({ workflow: [deep] }), []);
  const many = Array.from({ length: 5_000 }, (_, index) => ({ step: `s${index}`, auth: `c${index}` }));
  assert.equal(credentialUses({ workflow: many }).length, 1_000);
  const odd = JSON.parse('{"workload":{},"workflow":[{"auth":"{{ workload.__proto__.x }}"}]}') as JsonObject;
  assert.deepEqual(credentialUses(odd), []);
});
