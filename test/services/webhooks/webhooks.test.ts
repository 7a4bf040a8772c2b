import assert from "node:assert/strict";
import { test } from "node:test";
import { createWebhooks, type HookDelivery, type WebhooksDeps } from "../../../src/services/webhooks/webhooks.ts";

/** Webhooks whose clock stands still until it is moved, over triggers that start everything. */
function webhooks() {
  const clock = { ms: 0, machine: 0 };
  const known = { enabled: true };
  const definition = { name: "t", kind: "webhook", webhook: { path: "a", verify: { preset: "none", secrets: [] } } };
  const triggers = {
    findAt: (_kind: string, path: string) =>
      Promise.resolve({ triggerId: path, path: "p", name: "t", ...known, definition }),
    fire: () =>
      Promise.resolve({
        fireId: "1",
        status: "started",
        executionId: "7",
        reason: null,
        isRepeated: false,
        firedAt: 0,
      }),
    scope: () => ({}),
  };
  const log = { note: () => undefined };
  const deps = { triggers, log, now: () => clock.ms + clock.machine, busy: () => clock.ms } as unknown as WebhooksDeps;
  const hooks = createWebhooks(deps);
  const listen = () => ({ signal: new AbortController().signal, done: () => undefined });
  const take = async (path: string) => {
    const read = () => Promise.resolve(Buffer.from("{}"));
    const delivery: HookDelivery = {
      path,
      method: "POST",
      headers: {},
      query: {},
      read,
      parse: () => ({}),
      requestId: "r",
    };
    return await hooks.take(delivery, listen).then(
      () => "taken",
      (error: { code: string; detail?: { retry_after_seconds: number } }) =>
        [error.code, error.detail?.retry_after_seconds].join(" ").trim(),
    );
  };
  return { clock, known, take };
}

test("100 deliveries of a path are taken in a second, the next is refused with a time, and other paths go on", async () => {
  const { clock, take } = webhooks();
  for (let index = 0; index < 99; index += 1) assert.equal(await take("a"), "taken");
  assert.equal(await take("a"), "taken", "the hundredth");
  assert.equal(await take("a"), "RATE_LIMITED 1");
  assert.equal(await take("b"), "taken");
  clock.ms += 10;
  assert.equal(await take("a"), "taken", "a hundredth of a second later one more");
  assert.equal(await take("a"), "RATE_LIMITED 1");
});

test("a trigger that was disabled takes nothing a second later, though the machine's clock has gone back by hours", async () => {
  const { clock, known, take } = webhooks();
  assert.equal(await take("a"), "taken");
  known.enabled = false;
  clock.machine = -5 * 3_600_000;
  clock.ms += 999;
  assert.equal(await take("a"), "taken");
  clock.ms += 1;
  assert.equal(await take("a"), "NOT_FOUND");
});
