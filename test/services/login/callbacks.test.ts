import assert from "node:assert/strict";
import { test } from "node:test";
import { FlowError } from "../../../src/schema/words/errors.ts";
import { createCallbacks } from "../../../src/services/login/callbacks.ts";

test("a callback of the execution is handed over, once", async () => {
  const callbacks = createCallbacks();
  const expected = callbacks.expect();
  expected.bind("7");
  const body = { request_id: expected.requestId, execution_id: "7", user: { email: "ada@example.com" } };
  await callbacks.take(body);
  assert.deepEqual(await expected.answer, body);
  await assert.rejects(callbacks.take(body), { code: "NOT_FOUND" });
});

test("of two callbacks at once one is taken", async () => {
  const callbacks = createCallbacks();
  const expected = callbacks.expect();
  const body = { request_id: expected.requestId, execution_id: "7" };
  const taken = [callbacks.take(body), callbacks.take(body)];
  expected.bind("7");
  const outcomes = await Promise.allSettled(taken);
  assert.deepEqual(outcomes.map(({ status }) => status).toSorted(), ["fulfilled", "rejected"]);
});

test("a callback that arrives before the answer with its execution waits for it", async () => {
  const callbacks = createCallbacks();
  const expected = callbacks.expect();
  const taken = callbacks.take({ request_id: expected.requestId, execution_id: "7" });
  expected.bind("7");
  await taken;
  assert.equal((await expected.answer).execution_id, "7");
});

test("a callback of another execution is refused, and the right one still counts", async () => {
  const callbacks = createCallbacks();
  const expected = callbacks.expect();
  expected.bind("7");
  await assert.rejects(callbacks.take({ request_id: expected.requestId, execution_id: "8" }), { code: "FORBIDDEN" });
  await callbacks.take({ request_id: expected.requestId, execution_id: "7" });
  assert.equal((await expected.answer).execution_id, "7");
});

test("an unknown or closed request is refused; a waiter for a closed one gets an error", async () => {
  const callbacks = createCallbacks();
  await assert.rejects(callbacks.take({ request_id: "invented", execution_id: "7" }), { code: "NOT_FOUND" });
  const expected = callbacks.expect();
  const early = callbacks.take({ request_id: expected.requestId, execution_id: "7" });
  expected.close();
  expected.close();
  await assert.rejects(early, { code: "NOT_FOUND" });
  await assert.rejects(expected.answer, { code: "CANCELLED" });
  await assert.rejects(callbacks.take({ request_id: expected.requestId, execution_id: "7" }), { code: "NOT_FOUND" });
});

test("a callback that its check refuses is refused to both sides, and is used up", async () => {
  const callbacks = createCallbacks();
  const expected = callbacks.expect(() => {
    throw new FlowError("INVALID_LOGIN", "Invalid email");
  });
  expected.bind("7");
  const body = { request_id: expected.requestId, execution_id: "7" };
  await assert.rejects(callbacks.take(body), { message: "Invalid email" });
  await assert.rejects(expected.answer, { message: "Invalid email" });
  await assert.rejects(callbacks.take(body), { code: "NOT_FOUND" });
});

test("request ids are of 256 random bits", () => {
  const callbacks = createCallbacks();
  const ids = Array.from({ length: 50 }, () => callbacks.expect().requestId);
  assert.equal(new Set(ids).size, 50);
  for (const id of ids) assert.match(id, /^[\w-]{43}$/);
});

test("no more are waited for than there is room for", () => {
  const callbacks = createCallbacks();
  const first = callbacks.expect();
  for (let more = 1; more < 5_000; more += 1) callbacks.expect();
  assert.throws(() => callbacks.expect(), { code: "UNAVAILABLE" });
  first.close();
  callbacks.expect();
});
