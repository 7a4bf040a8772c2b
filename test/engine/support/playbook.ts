import assert from "node:assert/strict";
import { compileProgram, type Program } from "../../../src/engine/program/program.ts";
import { loadPlaybook } from "../../../src/language/load/load.ts";

const HEAD = "apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: test }\n";

/** Compiles the text of a playbook; what every document begins with is put before it. Fails on any error in it. */
export function compile(text: string): Program {
  const { playbook, diagnostics } = loadPlaybook(HEAD + text, "test.yaml");
  const errors = diagnostics.filter(({ severity }) => severity === "error");
  assert.ok(playbook, `The playbook of this test is invalid: ${JSON.stringify(errors, null, 2)}\n${text}`);
  return compileProgram(playbook);
}
