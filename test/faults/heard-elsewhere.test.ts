import assert from "node:assert/strict";
import { test } from "node:test";
import { startTestNats } from "../support/servers/nats-server.ts";
import { endOf } from "../support/service/api-work.ts";
import { startManualWorker } from "./support/manual-worker.ts";
import { LONG, openStand } from "./support/stand.ts";

/* What one server does is heard at the other one: by the broker, and without one by looking at what is waited for. */

const nats = await startTestNats();
const RUNS = 15;

for (const [how, settings] of [
  ["told by the broker", { BROKER_URL: nats.url }],
  ["without a broker", {}],
] as const) {
  test(`an end at one server reaches a wait and a stream at the other, ${how}`, async (t) => {
    const stand = await openStand(t, { ...LONG, ...settings });
    const [one, two] = await Promise.all([stand.server(), stand.server()]);
    if (how === "told by the broker") {
      await Promise.all([one, two].map((server) => server.untilLog("notices go to and come from other servers")));
    }
    const [here, there] = [await stand.client(one), await stand.client(two)];
    const worker = await startManualWorker(here, "manual");
    const late: { wait: number[]; stream: number[] } = { wait: [], stream: [] };
    for (let run = 0; run < RUNS; run += 1) {
      const [id = ""] = await stand.start(here, "pair", 1);
      const waiting = there.call("GET", `/api/executions/${id}/result?wait_ms=20000`).then(({ body }) => {
        assert.equal(body.status, "COMPLETED");
        return performance.now();
      });
      const streamed = fetch(`${two.url}/api/executions/${id}/stream`)
        .then((response) => response.text())
        .then((text) => {
          assert.match(text, /event: end/);
          return performance.now();
        });
      let command = await worker.claim(id);
      for (let isLast = false; !isLast; ) {
        const answer = await here.report("manual", endOf(command, { step: command.step }), {
          claim: { limit: 1, wait_ms: 0 },
        });
        assert.equal(answer.status, 202, JSON.stringify(answer.body));
        const [next] = answer.body.commands;
        isLast = next === undefined;
        if (next !== undefined) command = next;
      }
      const endedAt = performance.now();
      late.wait.push((await waiting) - endedAt);
      late.stream.push((await streamed) - endedAt);
    }
    const median = (numbers: number[]) => numbers.toSorted((a, b) => a - b)[RUNS >> 1] ?? 0;
    const told = { wait: median(late.wait), stream: median(late.stream) };
    t.diagnostic(`heard later, p50 in ms: wait ${told.wait.toFixed(1)}, stream ${told.stream.toFixed(1)}`);
    // Some 5 and 20 ms on an idle machine. The poll of last resort runs each second: an answer within half a second came from a notice.
    assert.ok(told.wait < 500 && told.stream < 500, JSON.stringify(told));
  });
}
