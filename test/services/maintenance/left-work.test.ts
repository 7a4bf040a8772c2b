import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { createLeftWorkLooks } from "../../../src/services/maintenance/left-work.ts";

type Found = Record<"commands" | "pools", boolean>;

function setup(...answers: (Found | Error)[]) {
  const looks = createLeftWorkLooks<keyof Found>(async () => {
    const answer = answers.shift() ?? assert.fail();
    if (answer instanceof Error) throw answer;
    return answer;
  }, ["pools"]);
  const stopping = new AbortController();
  const went: string[] = [];
  const wait = (reason: keyof Found) => void looks.until(reason, stopping.signal).then(() => went.push(reason));
  const look = async () => {
    await looks.look();
    await setImmediate();
  };
  return { look, wait, went, stopping };
}

const NONE: Found = { commands: false, pools: false };

test("work waits for its reason alone, and for each run anew", async () => {
  const { look, wait, went } = setup(NONE, { ...NONE, commands: true }, NONE);
  wait("commands");
  await look();
  assert.deepEqual(went, []);
  await look();
  assert.deepEqual(went, ["commands"]);
  wait("commands");
  await look();
  assert.deepEqual(went, ["commands"]);
});

test("a reason that was found while its work was under way is not lost", async () => {
  const { look, wait, went } = setup({ ...NONE, commands: true }, { ...NONE, commands: true });
  await look();
  await look();
  wait("commands");
  await setImmediate();
  assert.deepEqual(went, ["commands"]);
  wait("commands");
  await setImmediate();
  assert.deepEqual(went, ["commands"], "once, however often it was found");
});

test("a reason whose end counts is looked at at first, and once more when it is gone", async () => {
  const { look, wait, went } = setup(NONE, NONE, { ...NONE, pools: true }, NONE, NONE);
  const ran: number[] = [];
  for (let count = 0; count < 5; count += 1) {
    wait("pools");
    await look();
    ran.push(went.length);
  }
  assert.deepEqual(ran, [1, 1, 2, 3, 3]);
});

test("a look that fails says so, wakes nothing, and loses nothing", async () => {
  const { look, wait, went } = setup({ ...NONE, pools: true }, new Error("away"), NONE);
  wait("commands");
  await look();
  await assert.rejects(look(), /away/);
  wait("pools");
  await setImmediate();
  assert.deepEqual(went, ["pools"]);
  wait("pools");
  await look();
  assert.deepEqual(went, ["pools", "pools"], "gone since the last look that succeeded");
});

test("what waits goes on when the process stops, and so does what comes later", async () => {
  const { wait, went, stopping } = setup();
  wait("commands");
  stopping.abort();
  wait("pools");
  await setImmediate();
  assert.deepEqual(went.sort(), ["commands", "pools"]);
});
