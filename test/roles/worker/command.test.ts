import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type CliProcess, folderWith, startFlow } from "../../support/service/cli-process.ts";
import { commandOf, documentOf, type FakeServer, startFakeServer } from "../../worker-role/support/fake-server.ts";
import { startGate } from "../../worker-role/support/gate.ts";

/** `flow serve --role worker` as a process, ended with the test. */
async function startWorker(
  context: TestContext,
  fake: FakeServer,
  environment: NodeJS.ProcessEnv = {},
): Promise<CliProcess> {
  const folder = await folderWith(context, {});
  const settings = { HOME: folder, FLOW_SERVER_URL: fake.url, FLOW_WORKER_NAME: "w", FLOW_HTTP_ALLOW_PRIVATE: "all" };
  const worker = startFlow(folder, ["serve", "--role", "worker"], { ...settings, ...environment });
  fake.users.push(async () => {
    worker.process.kill("SIGKILL");
    await worker.ended;
  });
  return worker;
}

test("a worker on its own says when it is ready, and SIGTERM lets its work end", async (t) => {
  const fake = await startFakeServer(t);
  const gate = await startGate(t);
  fake.documents.set("2", documentOf(gate.task("a")));
  fake.offer(commandOf(1, "2"));
  const worker = await startWorker(t, fake);
  await gate.reached("a");
  worker.process.kill("SIGTERM");
  await fake.until(() => fake.beats.some(({ draining }) => draining === true));
  gate.open("a");
  const { code, stdout, stderr } = await worker.ended;
  assert.equal(code, 0, stderr);
  assert.equal(stdout, `flow worker w is ready, server: ${fake.url}\n`);
  assert.deepEqual(fake.eventsOf("1").slice(-2), ["task.done", "command.completed"]);
  assert.equal(fake.calls.at(-1), "POST /api/worker/pool/deregister");
});

test("a second signal leaves at once", async (t) => {
  const fake = await startFakeServer(t);
  const gate = await startGate(t);
  fake.documents.set("2", documentOf(gate.task("a")));
  fake.offer(commandOf(1, "2"));
  const worker = await startWorker(t, fake);
  await gate.reached("a");
  worker.process.kill("SIGTERM");
  await fake.until(() => fake.beats.some(({ draining }) => draining === true));
  worker.process.kill("SIGTERM");
  assert.equal((await worker.ended).code, 130);
  assert.equal(fake.eventsOf("1").includes("command.failed"), false);
});

test("a worker that the server refuses says why, and retries until it is stopped", async (t) => {
  const fake = await startFakeServer(t);
  fake.script = ({ headers }) =>
    headers.authorization === "Bearer canary"
      ? { status: 401, body: { error: "no", code: "UNAUTHENTICATED" } }
      : undefined;
  const worker = await startWorker(t, fake, { FLOW_WORKER_TOKEN: "canary" });
  await worker.untilStderr("see FLOW_WORKER_TOKEN");
  await fake.until(() => fake.registrations.length > 2);
  worker.process.kill("SIGTERM");
  const { code, stdout, stderr } = await worker.ended;
  assert.deepEqual([code, stdout], [0, ""], stderr);
  assert.doesNotMatch(stderr, /canary/);
});
