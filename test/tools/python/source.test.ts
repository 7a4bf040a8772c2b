import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import { runProgram } from "../../../src/platform/system/run-program.ts";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import { pythonCall, testTool } from "../python-call.ts";

const tool = testTool({ maxCount: 1 });
const folder = mkdtempSync(join(tmpdir(), "flow-python-"));
const source = { file: join(folder, "flow.yaml") };
mkdirSync(join(folder, "scripts"));
writeFileSync(join(folder, "scripts/total.py"), "def main(n):\n    return 10 / n\n");
writeFileSync(join(folder, "latin1.py"), Buffer.from("x = '\xe9'", "latin1"));
after(async () => {
  await tool.close?.();
  rmSync(folder, { recursive: true });
});

function run(config: JsonObject, input: JsonObject = {}) {
  return tool.run(pythonCall("", { config, input, source }));
}

async function configurationError(config: JsonObject): Promise<string> {
  const result = await run(config);
  assert.equal(result.error?.kind, "configuration", JSON.stringify(result));
  return result.error?.message ?? "";
}

test("code_b64 is decoded", async () => {
  const result = await run({ code_b64: Buffer.from("result = 'é'").toString("base64") });
  assert.equal(result.data, "é");
});

test("code_b64 that is not base64, or not text, is a configuration error", async () => {
  assert.match(await configurationError({ code_b64: "§§§" }), /code_b64 is not base64/);
  assert.match(await configurationError({ code_b64: "/w==" }), /not UTF-8/);
});

test("an error in code_b64 counts the lines of the decoded text", async () => {
  const result = await run({ code_b64: Buffer.from("x = 1\nraise OSError").toString("base64") });
  assert.equal(result.error?.message, `OSError (${source.file} (code_b64):2)`);
});

test("a script is a file beside the playbook, by path, uri or file URL", async () => {
  assert.equal((await run({ script: "scripts/total.py" }, { n: 2 })).data, 5);
  assert.equal((await run({ script: { uri: "./scripts/total.py", source: { type: "file" } } }, { n: 4 })).data, 2.5);
  const url = pathToFileURL(join(folder, "scripts/total.py")).href;
  assert.equal((await run({ script: { uri: url } }, { n: 5 })).data, 2);
});

test("an error in a script has the script's path and line", async () => {
  const result = await run({ script: "scripts/total.py" }, { n: 0 });
  assert.equal(result.error?.message, "ZeroDivisionError: division by zero (scripts/total.py:2, in main)");
});

test("a script may be inline", async () => {
  assert.equal((await run({ script: { source: { type: "inline", code: "result = 1" } } })).data, 1);
  assert.equal((await run({ script: { code: "result = 2" } })).data, 2);
});

test("a script outside of the playbook's folder is refused, by whatever way it is named", async () => {
  const outside = mkdtempSync(join(tmpdir(), "flow-outside-"));
  writeFileSync(join(outside, "secret.py"), "result = 1\n");
  symlinkSync(join(outside, "secret.py"), join(folder, "link.py"));
  for (const script of [
    "../secret.py",
    join(outside, "secret.py"),
    pathToFileURL(join(outside, "secret.py")).href,
    "scripts/../../secret.py",
  ]) {
    assert.match(await configurationError({ script }), /lies outside of that folder.*stays in it/);
  }
  assert.match(await configurationError({ script: "link.py" }), /leads out of that folder/);
  rmSync(outside, { recursive: true });
});

test("a named pipe is not accepted as a script, and does not block", async () => {
  await runProgram("mkfifo", ["pipe.py"], { folder });
  assert.match(await configurationError({ script: "pipe.py" }), /is not a file/);
});

test("a worker without a folder of scripts reads none, and one with a folder reads from there", async () => {
  const none = testTool({ maxCount: 1, scriptFiles: "none" });
  const refused = await none.run(pythonCall("", { config: { script: "scripts/total.py" }, source }));
  assert.equal(refused.error?.kind, "configuration");
  assert.match(refused.error?.message ?? "", /reads none.*FLOW_SCRIPT_FOLDER/);
  const shared = testTool({ maxCount: 1, scriptFiles: { folder: join(folder, "scripts") } });
  const elsewhere = { file: "catalog/path" };
  const config = { script: { uri: "total.py" } };
  assert.equal((await shared.run(pythonCall("", { config, input: { n: 5 }, source: elsewhere }))).data, 2);
  const up = await shared.run(pythonCall("", { config: { script: "../latin1.py" }, source: elsewhere }));
  assert.match(up.error?.message ?? "", /lies outside of that folder/);
  await Promise.all([none.close?.(), shared.close?.()]);
});

test("a script that is not the one whose sha256 the playbook names does not run", async () => {
  const sha256 = createHash("sha256").update("def main(n):\n    return 10 / n\n").digest("hex");
  const script = { uri: "scripts/total.py", sha256 };
  assert.equal((await run({ script }, { n: 2 })).data, 5);
  const other = await run({ script: { ...script, sha256: "0".repeat(64) } }, { n: 2 });
  assert.deepEqual([other.error?.kind, other.error?.code], ["configuration", "SCRIPT_CHANGED"]);
  assert.ok(other.error?.message.includes(sha256));
  assert.match(await configurationError({ script: { ...script, sha256: "abc" } }), /64 hexadecimal digits/);
});

test("a script that is missing, no file or not text is a configuration error that names it", async () => {
  assert.match(await configurationError({ script: "nope.py" }), /Cannot read the script "nope\.py".*ENOENT.*relative/);
  assert.match(await configurationError({ script: "scripts" }), /is not a file/);
  assert.match(await configurationError({ script: "latin1.py" }), /latin1\.py.*not valid/);
});

test("a script from elsewhere is refused with a way out", async () => {
  const message = /only inline code, files and http can be loaded.*http task/;
  for (const type of ["gcs", "s3", "github"]) {
    const said = await configurationError({ script: { uri: "a.py", source: { type } } });
    assert.match(said, message);
    assert.ok(said.includes(`comes from "${type}"`));
  }
  assert.match(await configurationError({ script: "s3://bucket/a.py" }), message);
});

test("a task without code, or with code that is not text, is a configuration error", async () => {
  assert.match(await configurationError({}), /has no code\. Give it as "code"/);
  assert.match(await configurationError({ code: "" }), /key "code"/);
  assert.match(await configurationError({ code: ["x"] }), /key "code"/);
  assert.match(await configurationError({ script: { source: { type: "inline" } } }), /has no "source\.code"/);
  assert.match(await configurationError({ script: { source: { type: "file" } } }), /has no "uri"/);
});

test("libs that are not aliases of modules are a configuration error", async () => {
  const code = "result = 1";
  assert.match(await configurationError({ code, libs: "numpy" }), /key "libs".*For example libs: \{np: numpy\}/);
  assert.match(await configurationError({ code, libs: { "a-b": "json" } }), /not a Python identifier/);
  assert.match(await configurationError({ code, libs: { a: { from: "json" } } }), /key "libs\.a/);
});
