import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { packagePath } from "../../src/platform/system/package-file.ts";
import { folderWith } from "../support/service/cli-process.ts";
import { runProgram } from "./installed-program.ts";

/*
 * `npm pack` and what it gives, installed in an empty folder. The packages come from npm's cache as far as it has them.
 */

const PYTHON = `apiVersion: flow/v2
kind: Playbook
metadata: {name: py}
workflow:
  - {step: start, tool: {kind: python, code: 'result = {"answer": 40 + 2}'}}
`;

test("the packed package runs a playbook and serves a page's files from an empty folder", async (t) => {
  const packed = await folderWith(t, {});
  // Its scripts would build what is there, under the tests that run beside this one.
  const pack = await runProgram(
    ["npm", "pack", "--ignore-scripts", "--silent", "--pack-destination", packed],
    packagePath("."),
    process.env,
  );
  assert.equal(pack.code, 0, pack.stderr);
  const [file = ""] = readdirSync(packed);
  assert.match(file, /^flow-.*\.tgz$/);

  const folder = await folderWith(t, {});
  const flags = ["--prefer-offline", "--no-audit", "--no-fund", "--omit=optional"];
  const install = await runProgram(["npm", "install", ...flags, join(packed, file)], folder, process.env);
  assert.equal(install.code, 0, install.stderr);

  const { PATH, HOME } = process.env;
  const flow = join(folder, "node_modules/.bin/flow");
  const hello = join(folder, "node_modules/flow/playbooks/examples/hello.yaml");
  const run = await runProgram([flow, "run", hello, "--json"], folder, { PATH, HOME });
  assert.equal(run.code, 0, run.stderr);
  assert.deepEqual((JSON.parse(run.stdout) as { result: object }).result, { message: "Hello, World!", letters: 13 });
  assert.ok(existsSync(join(folder, "node_modules/flow/dist/page/index.html")));

  // The Python harness is in the bundle: the package has no folder `src`.
  const python = await runProgram([flow, "run", "py.yaml", "--json"], await folderWith(t, { "py.yaml": PYTHON }), {
    PATH,
    HOME,
  });
  assert.deepEqual((JSON.parse(python.stdout) as { result: object }).result, { answer: 42 }, python.stderr);

  // Its other name: without a service there is nothing to examine, and it says where it looked.
  const doctor = await runProgram(
    [join(folder, "node_modules/.bin/flow-doctor"), "reachability", "--server-url", "http://127.0.0.1:9"],
    folder,
    { PATH, HOME },
  );
  assert.match(doctor.stdout, /127\.0\.0\.1:9/);
});
