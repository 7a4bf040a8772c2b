import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

const module = new URL("../../../src/platform/system/forget-variables.js", import.meta.url).href;

/** What a process and its child see of its environment after it has forgotten two variables. */
function seen(environment: NodeJS.ProcessEnv): Record<string, string> {
  const script = `
const { forgetVariables } = await import(${JSON.stringify(module)});
const { readFileSync } = await import("node:fs");
const { execFileSync } = await import("node:child_process");
const isDone = forgetVariables(process.env, ["SECRET", "OTHER", "ABSENT"]);
const shown = readFileSync("/proc/self/environ", "latin1");
const child = execFileSync("/usr/bin/env", { encoding: "utf8" });
console.log(JSON.stringify({ isDone, shown, child, kept: process.env.SECRETS ?? "", left: process.env.SECRET ?? "" }));`;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    env: { PATH: process.env["PATH"], ...environment },
    encoding: "utf8",
  });
  assert.ok(stdout !== "", stderr);
  return JSON.parse(stdout) as Record<string, string>;
}

test("a forgotten variable is neither shown by the system nor inherited; others are", {
  skip: process.platform !== "linux",
}, () => {
  const { isDone, shown, child, kept, left } = seen({
    SECRET: "canary",
    OTHER: "x=canary",
    SECRETS: "kept",
    LAST: "end",
  });
  assert.deepEqual([isDone, kept, left], [true, "kept", ""]);
  for (const text of [shown, child]) {
    assert.doesNotMatch(String(text), /canary|\bSECRET=|OTHER/);
    assert.match(String(text), /SECRETS=kept/);
    assert.match(String(text), /LAST=end/);
  }
});

test("nothing to forget changes nothing", { skip: process.platform !== "linux" }, () => {
  assert.match(String(seen({ LAST: "end" })["shown"]), /LAST=end/);
});
