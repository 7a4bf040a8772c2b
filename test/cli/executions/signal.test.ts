import assert from "node:assert/strict";
import { before, test } from "node:test";
import { workWith } from "../../support/service/api-work.ts";
import { openOperatedApi } from "../operated-api.ts";

/* `flow signal` against a server, which runs waits itself. */

const { api, commands } = await openOperatedApi({ FLOW_PURE_STEPS: "server" });
const work = workWith(api);
before(() =>
  work.register(
    "orders/paid",
    `  - { step: paid, tool: { kind: wait, signal: payment, key: A-17 }, next: { arcs: [{ step: end }] } }
  - { step: end, tool: { kind: noop, result: { got: "{{ paid.data }}" } } }
`,
  ),
);

test("what became of a signal is said: a slip in its name or key is seen, the second with an id changes nothing", async (t) => {
  const run = await commands(t);
  const id = await work.execute("orders/paid");
  const status = await run("status", id);
  assert.match(status.stdout, /paid {2}waits for signal 'payment' with key 'A-17' /);
  const slip = await run("signal", id, "payment", "--key", "A17", "--id", "evt");
  const sent = `Signal 'payment' was sent to execution ${id}: `;
  const kept = "no step waits for it now, and the execution keeps it. It waits for 'payment' with key 'A-17'";
  assert.deepEqual([slip.code, slip.stdout], [0, `${sent}${kept}\n`]);
  const again = await run("signal", id, "payment", "--key", "A-17", "--id", "evt");
  assert.equal(again.stdout, `${sent}it was sent before, and nothing has changed\n`);
  const right = await run("signal", id, "payment", "--key", "A-17", "--data", '{"amount": 2}', "--json");
  assert.deepEqual(JSON.parse(right.stdout), { reached: 1, kept: false, duplicate: false });
  const body = await work.runToEnd(id);
  assert.deepEqual([body["status"], body["result"]], ["COMPLETED", { got: { amount: 2 } }]);
  const late = await run("signal", id, "payment", "--key", "A-17");
  assert.equal(late.code, 1);
  assert.match(late.stderr, /Signal 'payment' was not sent to execution \d+: the execution has ended \(COMPLETED\)/);
});

test("data that is no JSON, and an execution that is not there, are refused", async (t) => {
  const run = await commands(t);
  const id = await work.execute("orders/paid");
  const broken = await run("signal", id, "payment", "--data", "{amount");
  assert.equal(broken.code, 2);
  assert.match(broken.stderr, /--data is not JSON/);
  assert.equal((await run("signal", "1", "payment")).code, 2);
  await run("cancel", id);
});

test("a signal to everyone: how many it reached, or that it is kept or not; the second with an id changes nothing", async (t) => {
  const run = await commands(t);
  const ids = [await work.execute("orders/paid"), await work.execute("orders/paid")];
  const sent = "Signal 'payment' was sent to everyone: ";
  const both = await run("signal", "payment", "--key", "A-17", "--data", "3", "--id", "all");
  assert.deepEqual([both.code, both.stdout], [0, `${sent}2 waits ended with it\n`]);
  for (const id of ids) assert.equal((await work.runToEnd(id))["status"], "COMPLETED");
  const again = await run("signal", "payment", "--key", "A-17", "--id", "all");
  assert.equal(again.stdout, `${sent}it was sent before, and nothing has changed\n`);
  const kept = await run("signal", "payment", "--key", "B", "--retain", "1h");
  assert.equal(kept.stdout, `${sent}no step waits for it now, and it is kept for the first that will\n`);
  const lost = await run("signal", "payment", "--key", "C", "--retain", "0", "--json");
  assert.deepEqual(JSON.parse(lost.stdout), { reached: 0, kept: false, duplicate: false });
  const wrong = await run("signal", "payment", "--retain", "25h");
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /retain/);
  const nameless = await run("signal", "7211");
  assert.deepEqual([nameless.code, /Give the name of the signal too/.test(nameless.stderr)], [2, true]);
});
