import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { runFlow } from "../cli/in-process.ts";
import { createServedDatabase } from "../support/database/postgres.ts";
import { ownDatabase } from "../support/engine/key-ring.ts";
import { flow, folderWith } from "../support/service/cli-process.ts";
import { startServe } from "../support/service/serve.ts";

/*
 * Tokens that can be guessed, and callers who guess: at processes as users start them. Short tokens are refused wherever other
 * machines reach the listener; wrong ones are slowed down, right ones never.
 */

/** One character less than a token must have beyond loopback, and exactly as many. */
const [SHORT, LONG, OTHER] = ["s".repeat(31), "l".repeat(32), "o".repeat(32)];
const SHORT_SAID = /has fewer than 32 characters and could be guessed\. Make another with 'openssl rand -hex 32'/;

/** How long the answer to a wrong token is held back. Timers may be a little early. */
const HOLD_MS = 950;
/** Wrong tokens that are answered at once, and answers held back at a time, of one address. */
const AT_ONCE = 10;
const HELD_MAX = 8;

const gatewayPorts = { FLOW_GATEWAY_INTERNAL_PORT: "0" };

for (const [role, what, settings] of [
  ["server", "the operator's token", { FLOW_SERVER_TOKEN: SHORT, FLOW_WORKER_TOKEN: LONG }],
  ["server", "the workers' token", { FLOW_SERVER_TOKEN: LONG, FLOW_WORKER_TOKEN: SHORT }],
  ["all", "the operator's token", { FLOW_SERVER_TOKEN: SHORT }],
  ["gateway", "the server's token", { FLOW_SERVER_TOKEN: SHORT, ...gatewayPorts }],
  [
    "gateway",
    "the server's token, for callbacks alone",
    {
      ...{ FLOW_SERVER_TOKEN: SHORT, FLOW_HOST: "127.0.0.1", FLOW_GATEWAY_INTERNAL_HOST: "0.0.0.0" },
      ...gatewayPorts,
    },
  ],
  ["doctor", "its own token", { FLOW_SERVER_TOKEN: LONG, FLOW_DOCTOR_TOKEN: SHORT }],
  ["doctor", "the operator's token", { FLOW_SERVER_TOKEN: SHORT }],
] as const) {
  test(`beyond loopback a ${role} does not start with ${what} of 31 characters`, async (t) => {
    const folder = await folderWith(t, {});
    const environment = { HOME: folder, FLOW_HOST: "0.0.0.0", ...settings };
    const { code, stdout, stderr } = await runFlow(folder, ["serve", "--role", role, "--port", "0"], environment);
    assert.deepEqual([code, stdout], [2, ""], stderr);
    assert.match(stderr, SHORT_SAID);
    assert.doesNotMatch(stderr, /sssss|lllll/, "the token itself is not shown");
  });
}

test("a token of 32 characters is taken there, also from a file; on loopback a shorter one, with a warning", async (t) => {
  const { url } = await createServedDatabase();
  const folder = await folderWith(t, {});
  await writeFile(join(folder, "short"), `${SHORT}\n`);
  await writeFile(join(folder, "long"), `${LONG}\n`);
  const file = (name: string) => ({ ...ownDatabase(url), FLOW_SERVER_TOKEN_FILE: join(folder, name) });
  const refused = await flow(folder, ["serve", "--role", "server", "--port", "0", "--host", "0.0.0.0"], {
    HOME: folder,
    ...file("short"),
  });
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, SHORT_SAID);
  const far = await startServe(t, folder, { ...file("long"), FLOW_WORKER_TOKEN: OTHER }, ["--host", "0.0.0.0"]);
  const near = await startServe(t, folder, file("short"));
  await near.untilStderr("FLOW_SERVER_TOKEN has fewer than 32 characters");
  far.process.kill("SIGTERM");
  assert.doesNotMatch((await far.ended).stderr, /fewer than/);
});

interface Answered {
  status: number;
  ms: number;
  retryAfter: string | undefined;
  body: string;
}

/** A call with a token, from one of this machine's addresses, on a connection of its own. */
function call(url: string, token: string, localAddress = "127.0.0.1"): Promise<Answered> {
  const began = performance.now();
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` };
    request(`${url}/api/executions`, { headers, localAddress, agent: false }, (response) => {
      text(response).then((body) => {
        const ms = performance.now() - began;
        resolve({ status: response.statusCode ?? 0, ms, retryAfter: response.headers["retry-after"], body });
      }, reject);
    })
      .on("error", reject)
      .end();
  });
}

async function guarded(t: TestContext) {
  const { url } = await createServedDatabase();
  const tokens = { FLOW_SERVER_TOKEN: LONG, FLOW_WORKER_TOKEN: OTHER };
  return await startServe(t, await folderWith(t, {}), { ...ownDatabase(url), ...tokens });
}

test("after some wrong tokens each further one takes a second; the right one, and other addresses, are as fast as ever", async (t) => {
  const { url } = await guarded(t);
  const guesses = (count: number) =>
    Promise.all(Array.from({ length: count }, (_, index) => call(url, `guess-${index}-${"x".repeat(30)}`)));
  const first = await guesses(AT_ONCE);
  assert.deepEqual(new Set(first.map(({ status }) => status)), new Set([401]));
  assert.ok(Math.min(...first.map(({ ms }) => ms)) < HOLD_MS, "the first ones are not held back");

  // Held back, and beside them nothing else is. The quickest of three, as the machine may be busy with other tests.
  const held = guesses(HELD_MAX);
  const quickest = async (status: number, token: string, address?: string) => {
    const calls = await Promise.all([1, 2, 3].map(() => call(url, token, address)));
    for (const answered of calls) assert.equal(answered.status, status, answered.body);
    assert.ok(
      Math.min(...calls.map(({ ms }) => ms)) < HOLD_MS,
      `${status}: ${calls.map(({ ms }) => ms).join(", ")} ms`,
    );
  };
  await quickest(200, LONG);
  await quickest(403, OTHER);
  await quickest(401, SHORT, "127.0.0.2");
  const late = (await held).filter(({ ms }) => ms >= HOLD_MS);
  // Six seconds give an address one more that is answered at once.
  assert.ok(late.length >= HELD_MAX - 1, `${late.length} were held back`);
  assert.deepEqual(new Set((await held).map(({ status }) => status)), new Set([401]));

  // Beyond as many as may be held back they are refused, so that they hold no connection; the right one is not.
  const crowd = guesses(4 * HELD_MAX);
  assert.equal((await call(url, LONG)).status, 200);
  const refused = (await crowd).filter(({ status }) => status !== 401);
  assert.ok(refused.length > 0, "some are refused");
  for (const { status, retryAfter, body } of refused) {
    assert.equal(status, 429, body);
    assert.ok(Number(retryAfter) >= 1, retryAfter);
    assert.match(body, /RATE_LIMITED/);
  }
  assert.equal((await call(url, LONG)).status, 200);
});

test("a stop does not wait for answers that are held back", async (t) => {
  const server = await guarded(t);
  await Promise.all(Array.from({ length: AT_ONCE }, () => call(server.url, "wrong")));
  const held = call(server.url, "wrong");
  // An answer of the same server, after the call above was read.
  assert.equal((await call(server.url, LONG)).status, 200);
  server.process.kill("SIGTERM");
  assert.equal((await held.catch(() => ({ status: 401 }))).status, 401);
  assert.equal((await server.ended).code, 0);
});
