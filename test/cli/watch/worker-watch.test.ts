import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { watchForWorkers } from "../../../src/cli/watch/wait-reason.ts";
import { startHttpServer } from "../../support/servers/http-server.ts";
import { begun, started, watchedRun } from "../watched-run.ts";

const AT = "2026-01-31T12:00:00.000Z";

function worker(status: string): Record<string, unknown> {
  return {
    ...{ runtime_id: "1", name: "w1", status, capacity: 64, running: 0, capabilities: [], labels: {}, runtime: {} },
    ...{ heartbeat_at: AT, heartbeat_age_ms: 1, created_at: AT },
  };
}

function execution(labels: Record<string, string>): Record<string, unknown> {
  const command = { command_id: "7", step: "7", attempt: 0, worker: null, claimed_at: null, kinds: [], labels };
  return {
    ...{ execution_id: "1", catalog_id: "1", path: "demo", version: 1, status: "RUNNING", progress: 0, error: null },
    ...{ parent_execution_id: null, started_at: AT, ended_at: null, duration_ms: null, result: null, workload: {} },
    ...{ steps: [], commands: [command] },
  };
}

/** A server with this worker, and a run whose only step was issued. `asked` resolves at the third look at the workers. */
async function setup(t: TestContext, status: string, labels: Record<string, string> = {}) {
  let looks = 0;
  let enough = () => {};
  const asked = new Promise<void>((resolve) => {
    enough = resolve;
  });
  const server = await startHttpServer((request, response) => {
    if (!request.url.startsWith("/api/worker/pools")) {
      response.end(JSON.stringify(execution(labels)));
      return;
    }
    looks += 1;
    if (looks === 3) enough();
    response.end(JSON.stringify({ items: [worker(status)], next_cursor: null }));
  });
  t.after(() => server.close());
  const run = watchedRun();
  run.happen("1", begun("1", "demo", 0), started("7", 1));
  const said: string[] = [];
  const stop = new AbortController();
  const target = { url: server.origin, origin: "a test" };
  const watching = watchForWorkers(target, run.model, (text) => said.push(text), stop.signal, 5);
  return { run, said, asked, watching, stop };
}

test("work that waits without a ready worker is reported once, and its step shows the reason", async (t) => {
  const { run, said, asked, watching, stop } = await setup(t, "offline");
  await asked;
  stop.abort();
  await watching;
  assert.equal(said.length, 1);
  assert.match(said[0] ?? "", /^7 waits: no worker is ready at http:.*; 'flow workers' lists them$/);
  assert.deepEqual(run.model.root()?.byName.get("7")?.waits, { commandId: "7", text: "no worker is ready" });
});

test("the label that no worker has is named", async (t) => {
  const { said, asked, watching, stop } = await setup(t, "ready", { gpu: "true" });
  await asked;
  stop.abort();
  await watching;
  assert.equal(said.length, 1);
  assert.match(said[0] ?? "", /^7 waits: no worker that is ready has the label gpu=true at http:/);
});

test("nothing is reported while a worker is ready, and the watch ends when it is stopped", async (t) => {
  const { said, asked, watching, stop } = await setup(t, "ready");
  await asked;
  stop.abort();
  await watching;
  assert.deepEqual(said, []);
});
