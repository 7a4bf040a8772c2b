import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { pathToFileURL } from "node:url";
import type { JsonObject } from "../../src/schema/json.ts";
import { pythonCall, testTool } from "./python-call.ts";

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

test("a script that is missing, no file or not text is a configuration error that names it", async () => {
  assert.match(await configurationError({ script: "nope.py" }), /Cannot read the script "nope\.py".*ENOENT.*relative/);
  assert.match(await configurationError({ script: "scripts" }), /is not a file/);
  assert.match(await configurationError({ script: "latin1.py" }), /latin1\.py.*not valid/);
});

test("a script from elsewhere is refused with a way out", async () => {
  const message = /only inline code, files and http can be loaded.*http task/;
  assert.match(await configurationError({ script: { uri: "https://x.test/a.py" } }), message);
  assert.match(await configurationError({ script: { uri: "a.py", source: { type: "gcs" } } }), message);
});

test("a task without code, or with code that is none, is a configuration error", async () => {
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
