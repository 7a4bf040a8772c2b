import assert from "node:assert/strict";
import type { AddressInfo } from "node:net";
import { connect } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createServer } from "node:tls";
import { createServedDatabase } from "../../support/database/postgres.ts";
import { ownDatabase } from "../../support/engine/key-ring.ts";
import { TEST_TLS_CERTIFICATE, TEST_TLS_KEY } from "../../support/servers/tls.ts";
import { playbook } from "../../support/service/api.ts";
import { folderWith, startFlow } from "../../support/service/cli-process.ts";
import { type Serving, startServe } from "../../support/service/serve.ts";
import { answerOf } from "../../support/service/server-calls.ts";

/* A worker in a process of its own: its claims and reports go over one connection, wherever its server is. */

const [OPERATOR, WORKER] = ["o".repeat(32), "w".repeat(32)];

async function served(t: TestContext): Promise<Serving> {
  const { url } = await createServedDatabase();
  const tokens = { FLOW_SERVER_TOKEN: OPERATOR, FLOW_WORKER_TOKEN: WORKER, FLOW_PURE_STEPS: "workers" };
  return await startServe(t, await folderWith(t, {}), { ...ownDatabase(url), ...tokens });
}

function worker(t: TestContext, folder: string, environment: NodeJS.ProcessEnv) {
  const settings = { HOME: folder, FLOW_WORKER_TOKEN: WORKER, FLOW_TASK_ISOLATION: "none", ...environment };
  const process = startFlow(folder, ["serve", "--role", "worker"], settings);
  t.after(async () => {
    process.process.kill("SIGTERM");
    await process.ended;
  });
  return process;
}

/** Runs a playbook of one step to its end. */
async function runOne(url: string, path: string): Promise<unknown> {
  await answerOf(url, OPERATOR, "POST", "/api/catalog/register", { content: playbook(path) });
  const { execution_id: id } = await answerOf(url, OPERATOR, "POST", "/api/execute", { path });
  const result = await answerOf(url, OPERATOR, "GET", `/api/executions/${id}/result?wait_ms=30000`);
  return result["status"];
}

/** A series of the server, by the beginning of its line. */
async function series(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const line = text.split("\n").find((one) => one.startsWith(name));
  return Number(line?.slice(line.lastIndexOf(" ") + 1));
}

test("a worker behind TLS has its connection, with the authority that its calls by HTTP trust", async (t) => {
  const server = await served(t);
  const target = Number(new URL(server.url).port);
  const proxy = createServer({ key: TEST_TLS_KEY, cert: TEST_TLS_CERTIFICATE }, (socket) => {
    const onward = connect(target, "127.0.0.1");
    socket.pipe(onward).pipe(socket);
    for (const [one, other] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      one.on("error", () => undefined).on("close", () => other.destroy());
    }
  });
  proxy.on("tlsClientError", () => undefined);
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  t.after(() => proxy.close());
  const FLOW_SERVER_URL = `https://localhost:${(proxy.address() as AddressInfo).port}`;
  const folder = await folderWith(t, { "ca.pem": TEST_TLS_CERTIFICATE });
  const trusting = worker(t, folder, { FLOW_SERVER_URL, NODE_EXTRA_CA_CERTS: join(folder, "ca.pem") });
  await trusting.untilStderr("claims and reports go over one connection");
  assert.equal(await runOne(server.url, "tls/one"), "COMPLETED");
  assert.equal(await series(server.url, "flow_worker_connections "), 1);
});

test("a server that stops tells its workers, and does not wait for their connections", async (t) => {
  const first = await served(t);
  const folder = await folderWith(t, {});
  const own = worker(t, folder, { FLOW_SERVER_URL: first.url });
  await own.untilStderr("claims and reports go over one connection");
  assert.equal(await runOne(first.url, "stop/one"), "COMPLETED");
  first.process.kill("SIGTERM");
  await own.untilStderr("the worker connection ended: claims and reports go by HTTP");
  const { code, stderr } = await first.ended;
  assert.equal(code, 0, stderr);
  assert.doesNotMatch(stderr, /did not stop within/);
});
