import assert from "node:assert/strict";
import { test } from "node:test";
import { LONG, openStand } from "../faults/support/stand.ts";
import { until } from "../faults/support/until.ts";
import { sendTo } from "../support/service/server-calls.ts";

/* Who gets the name of a worker, with the token that all workers share. */

const TOKENS = {
  FLOW_SERVER_TOKEN: "operator-token-of-the-attacks-1",
  FLOW_WORKER_TOKEN: "worker-token-of-the-attacks-22",
};
/** A process under the same name was refused for a minute. It is started again by whatever looks after it, and tries again. */
const SOON_MS = 30_000;

test("a worker that was killed has its name back within seconds; until the server sees that it is gone, and from one that lives, nothing takes it", async (t) => {
  const stand = await openStand(t, { ...LONG, FLOW_WORKER_HEARTBEAT_SECONDS: "15" });
  const server = await stand.server(TOKENS);
  const token = TOKENS.FLOW_WORKER_TOKEN;
  const worker = () => stand.worker(server, "fixed", { FLOW_WORKER_TOKEN: token });
  const taken = async () => {
    const { status } = await sendTo(server.url, token, "POST", "/api/worker/pool/register", {
      name: "fixed",
      capacity: 1,
    });
    return status;
  };
  const first = await worker();
  assert.equal(await taken(), 409);
  // By the connection of its heartbeat, which the server holds, it notices the end of the process.
  await until("the first heartbeat", async () => {
    const [row] = await stand.database.sql`
      select heartbeat_at > created_at as "hasBeaten" from flow.runtime where kind = 'worker' and name = 'fixed'`;
    return row?.["hasBeaten"] === true;
  });
  await first.end("SIGKILL");
  assert.equal(await taken(), 409, "at once nothing is known");
  const began = performance.now();
  const second = await worker();
  assert.ok(performance.now() - began < SOON_MS, `it took ${Math.round(performance.now() - began)} ms`);
  assert.equal(await taken(), 409, "the second one has it");
  assert.ok(second.isRunning());
});
