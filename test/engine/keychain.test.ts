import assert from "node:assert/strict";
import { test } from "node:test";
import { given } from "./support/given.ts";
import { done } from "./support/reports.ts";

// Language document, section 4.4: a keychain field that cannot be resolved is an error, not undefined.

const KEYCHAIN = "keychain: [{ name: secret, kind: static, data: { token: t } }]";

test("a guard that reads the keychain fails its step, with the reason", () => {
  const run = given(`
${KEYCHAIN}
workflow: [{ step: a, when: "{{ keychain.secret.token == 't' }}" }]
`).is({ status: "FAILED", steps: { a: "FAILED" } });
  assert.match(run.state.error?.message ?? "", /KEYCHAIN: Entry 'secret' can be read in a step's input and tasks only/);
});

test("an arc that reads the keychain does not match", () => {
  given(`
${KEYCHAIN}
workflow:
  - { step: a, next: { arcs: [{ step: b, when: "{{ keychain.secret.token is defined }}" }] } }
  - { step: b }
`)
    .when(done("a"))
    .is({ status: "COMPLETED", steps: { a: "COMPLETED", b: "SKIPPED" } });
});
