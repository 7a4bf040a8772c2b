import assert from "node:assert/strict";
import { test } from "node:test";
import type { CliInput } from "../../../src/cli/command-line/command.ts";
import { planPlaybook } from "../../../src/cli/documents/plan.ts";
import { runTests } from "../../../src/cli/documents/test.ts";
import { validateFiles } from "../../../src/cli/documents/validate.ts";
import { runPlaybook } from "../../../src/cli/run/run.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";
import { command, workspace } from "../../testing/workspace.ts";

/* A search below a large folder lasts: Ctrl-C is not to wait for its end. */

const COMMANDS: readonly [name: string, run: (input: CliInput) => Promise<number>, word: string][] = [
  ["run", runPlaybook, "some/path"],
  ["plan", planPlaybook, "some/path"],
  ["validate", validateFiles, "."],
  ["test", runTests, "."],
];

for (const [name, run, word] of COMMANDS) {
  test(`Ctrl-C ends the search of flow ${name} below a folder`, async (t) => {
    const folder = workspace(t, { "below/other.yaml": "a: 1\n" });
    const signal = AbortSignal.abort(new FlowError("CANCELLED", "interrupted by SIGINT"));
    const { PATH } = process.env;
    await assert.rejects(command(run, folder, [word], {}, { PATH }, signal), { code: "CANCELLED" });
  });
}
