import assert from "node:assert/strict";
import { readFile, stat } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { createServedDatabase } from "../support/database/postgres.ts";
import { ownDatabase } from "../support/engine/key-ring.ts";
import { flow, folderWith } from "../support/service/cli-process.ts";
import { type Serving, startServe } from "../support/service/serve.ts";

/*
 * The unix socket between a server and the worker beside it is one more way in: it takes the same tokens, slows the same guesses
 * down, and is open to the user of these processes alone.
 */

const [OPERATOR, WORKER] = ["o".repeat(32), "w".repeat(32)];
/** How long the answer to a wrong token is held back. Timers may be a little early. */
const HOLD_MS = 950;
const AT_ONCE = 10;

async function started(
  t: TestContext,
  more: NodeJS.ProcessEnv = {},
): Promise<Serving & { socket: string; folder: string }> {
  const folder = await folderWith(t, {});
  const { url } = await createServedDatabase();
  const tokens = { FLOW_SERVER_TOKEN: OPERATOR, FLOW_WORKER_TOKEN: WORKER };
  const server = await startServe(t, folder, { ...ownDatabase(url), ...tokens, ...more }, ["--role", "all"]);
  return { ...server, folder, socket: join(folder, ".flow", `server-${new URL(server.url).port}.sock`) };
}

function call(socketPath: string, path: string, token?: string): Promise<{ status: number; ms: number; body: string }> {
  const began = performance.now();
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return new Promise((resolve, reject) => {
    const sent = request({ socketPath, path, headers, agent: false }, (answer) => {
      text(answer).then(
        (body) => resolve({ status: answer.statusCode ?? 0, ms: performance.now() - began, body }),
        reject,
      );
    });
    sent.on("error", reject).end();
  });
}

test("through the socket nothing is open that is not open at the port, and guesses are slowed down", async (t) => {
  const { socket } = await started(t);
  assert.equal((await stat(socket)).mode & 0o777, 0o600);
  const status = async (path: string, token?: string) => (await call(socket, path, token)).status;
  assert.deepEqual(
    [await status("/api/health"), await status("/api/executions"), await status("/api/executions", WORKER)],
    [200, 401, 403],
  );
  assert.equal(await status("/api/executions", OPERATOR), 200);
  const guesses = Array.from({ length: 2 * AT_ONCE }, (_, index) => `guess-${index}-${"x".repeat(30)}`);
  const answers = await Promise.all(guesses.map((token) => call(socket, "/api/executions", token)));
  assert.ok(answers.filter(({ status: is, ms }) => is === 429 || ms >= HOLD_MS).length >= AT_ONCE - 1);
});

test("the worker beside a server calls through its socket, also after the server was killed with its socket left", async (t) => {
  if (process.platform !== "linux") return;
  const first = await started(t);
  assert.ok((await accepted(first.socket)) >= 1, "the worker's long poll");
  first.process.kill("SIGKILL");
  await first.ended;
  assert.ok((await stat(first.socket)).isSocket());
  const { url } = await createServedDatabase();
  const environment = { ...ownDatabase(url), FLOW_SERVER_SOCKET: first.socket };
  await startServe(t, first.folder, environment, ["--role", "all"]);
  assert.ok((await accepted(first.socket)) >= 1);
});

test("a socket that is set and cannot be had ends the start with the reason", async (t) => {
  const folder = await folderWith(t, { kept: "no socket" });
  const { url } = await createServedDatabase();
  const FLOW_SERVER_SOCKET = join(folder, "kept");
  const environment = { HOME: folder, ...ownDatabase(url), FLOW_SERVER_SOCKET };
  const { code, stderr } = await flow(folder, ["serve", "--role", "server", "--port", "0"], environment);
  assert.equal(code, 2, stderr);
  assert.match(
    stderr,
    /FLOW_SERVER_SOCKET: cannot listen on .*\/kept: there is a file of that name, which is no socket/,
  );
  assert.equal(await readFile(FLOW_SERVER_SOCKET, "utf8"), "no socket");
});

/** Connections that were taken through a socket and are open, once one is there. */
async function accepted(path: string): Promise<number> {
  const CONNECTED = "03";
  for (;;) {
    const lines = (await readFile("/proc/net/unix", "utf8")).split("\n").map((line) => line.trim().split(/\s+/));
    const open = lines.filter((columns) => columns[7] === path && columns[5] === CONNECTED);
    if (open.length > 0) return open.length;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
