import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { isAlive, mayRun } from "../../../src/platform/system/process.ts";

test("a process is alive until it is gone, and nonsense never is", async () => {
  const child = spawn("cat");
  assert.equal(isAlive(child.pid ?? 0), true);
  child.stdin.end();
  await once(child, "close");
  assert.equal(isAlive(child.pid ?? 0), false);
  for (const pid of [0, -1, 1.5, Number.NaN]) assert.equal(isAlive(pid), false);
});

test("a process of this program is distinguished from other programs", async () => {
  const child = spawn("cat");
  await once(child, "spawn");
  assert.equal(await mayRun("cat", child.pid ?? 0), true);
  assert.equal(await mayRun("postgres", child.pid ?? 0), false);
  child.stdin.end();
  await once(child, "close");
});

test("a process that has ended and was not taken notice of runs nothing", async () => {
  // The shell becomes another program, which does not know that it has a child. The child lives until that has happened: a
  // shell that is still one would take notice of its end.
  const parent = spawn("sh", ["-c", "sleep 0.3 & echo $!; exec cat"]);
  const [line] = await once(createInterface(parent.stdout), "line");
  const pid = Number(line);
  while (await mayRun("sleep", pid)) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(isAlive(pid), true);
  parent.stdin.end();
  await once(parent, "close");
});
