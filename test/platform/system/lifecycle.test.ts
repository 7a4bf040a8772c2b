import assert from "node:assert/strict";
import { test } from "node:test";
import { createLifecycle } from "../../../src/platform/system/lifecycle.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";

test("parts stop in the reverse of their order, one after the other", async () => {
  const said: string[] = [];
  const lifecycle = createLifecycle();
  for (const name of ["database", "server", "loop"]) {
    lifecycle.add(name, async () => {
      said.push(`${name} stops`);
      await new Promise(setImmediate);
      said.push(`${name} stopped`);
    });
  }
  await lifecycle.stop();
  assert.deepEqual(
    said,
    ["loop", "server", "database"].flatMap((name) => [`${name} stops`, `${name} stopped`]),
  );
});

test("stopping twice, also at the same time, stops each part once, and all wait for the end", async () => {
  let stops = 0;
  let end = () => {};
  const lifecycle = createLifecycle();
  lifecycle.add("slow", () => {
    stops += 1;
    return new Promise<void>((resolve) => {
      end = resolve;
    });
  });
  const calls = [lifecycle.stop(), lifecycle.stop()];
  let ended = false;
  void calls[1]?.then(() => {
    ended = true;
  });
  await new Promise(setImmediate);
  assert.equal(ended, false);
  end();
  await Promise.all([...calls, lifecycle.stop()]);
  assert.equal(stops, 1);
});

test("a part that fails, or hangs, does not keep the others running; both are reported", async () => {
  const stopped: string[] = [];
  const lifecycle = createLifecycle(20);
  lifecycle.add("first", () => void stopped.push("first"));
  lifecycle.add("hanging", () => new Promise(() => undefined));
  lifecycle.add("failing", () => {
    throw new Error("the socket is gone");
  });
  await assert.rejects(lifecycle.stop(), (error) => {
    assert.ok(error instanceof FlowError);
    assert.match(error.message, /the socket is gone; hanging did not stop within 20 ms/);
    return true;
  });
  assert.deepEqual(stopped, ["first"]);
});

test("nothing can be added once it stops", async () => {
  const lifecycle = createLifecycle();
  await lifecycle.stop();
  assert.throws(() => lifecycle.add("late", () => undefined), /late was started while everything was stopping/);
});
