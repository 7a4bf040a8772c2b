import assert from "node:assert/strict";
import { tmpdir } from "node:os";
import { after, test } from "node:test";
import { loadConfig } from "../../src/platform/config/config.ts";
import { createSecret } from "../../src/platform/crypto/secret.ts";
import { createLifecycle } from "../../src/platform/system/lifecycle.ts";
import { startDoctor } from "../../src/roles/doctor/doctor.ts";
import { openDoctor } from "../../src/roles/doctor/open-doctor.ts";
import { recordLog } from "../support/engine/recorded-log.ts";
import { closedPort, startHttpServer } from "../support/servers/http-server.ts";
import { startTestNats } from "../support/servers/nats-server.ts";

/* Where the doctor connects to, with what, and where it listens. */

const SIGNAL = new AbortController().signal;
const ANSWER = { stale_seconds: 60, checks: [], findings: [], skipped: [], counts: {} };
const server = await startHttpServer((_, response) => response.end(JSON.stringify(ANSWER)));
after(() => server.close());

async function doctorOf(home: { url: string; token?: string }, settings: Record<string, string> = {}) {
  const token = home.token === undefined ? undefined : createSecret(home.token);
  return await openDoctor(loadConfig(settings), { url: home.url, token }, tmpdir());
}

test("the token goes to the doctor's own server, and to no other that it is asked to look at", async () => {
  const seen = () => server.requests.splice(0).map(({ headers }) => headers.authorization);
  const own = await doctorOf({ url: server.origin, token: "secret-1" });
  await own.detect({}, SIGNAL);
  assert.deepEqual(new Set(seen()), new Set(["Bearer secret-1"]));
  await own.detect({ server_url: server.origin }, SIGNAL);
  assert.deepEqual(new Set(seen()), new Set(["Bearer secret-1"]));
  const other = await doctorOf({ url: `http://127.0.0.1:${await closedPort()}`, token: "secret-1" });
  for (const tool of ["detect", "reachability", "repair_trigger_reaper"] as const) {
    await other[tool]({ server_url: server.origin }, SIGNAL);
  }
  assert.deepEqual(new Set(seen()), new Set([undefined]));
});

test("an invalid address or DSN is an error that does not repeat its password", async () => {
  const doctor = await doctorOf({ url: server.origin });
  for (const asked of [
    { server_url: "file:///etc/passwd" },
    { server_url: "http://user:hidden-1@host" },
    { db_dsn: "mysql://user:hidden-1@host/db" },
    { db_dsn: "hidden-1" },
  ]) {
    const outcome = await doctor.detect(asked, SIGNAL);
    assert.equal(outcome.severity, "error");
    assert.equal(outcome.data["code"], "INVALID_INPUT");
    assert.doesNotMatch(JSON.stringify(outcome), /hidden-1/);
  }
});

test("errors of an unreachable database or broker name its place, not its password", async () => {
  const port = await closedPort();
  const settings = {
    FLOW_DATABASE_URL: `postgres://flow:hidden-2@127.0.0.1:${port}/flow`,
    BROKER_URL: `nats://flow:hidden-3@127.0.0.1:${port}`,
  };
  const doctor = await doctorOf({ url: server.origin }, settings);
  const outcome = await doctor.reachability({}, SIGNAL);
  const targets = outcome.data["targets"] as { target: string; reachable: boolean; why?: string }[];
  assert.deepEqual(
    targets.map(({ target, reachable }) => [target, reachable]),
    [
      ["server", true],
      ["database", false],
      ["broker", false],
    ],
  );
  assert.match(targets[1]?.why ?? "", new RegExp(`^The database at 127\\.0\\.0\\.1:${port}/flow cannot be reached`));
  assert.doesNotMatch(JSON.stringify(outcome), /hidden-/);
});

test("a broker that answers is reachable", async () => {
  const nats = await startTestNats();
  const outcome = await (await doctorOf({ url: server.origin }, { BROKER_URL: nats.url })).reachability({}, SIGNAL);
  const targets = outcome.data["targets"] as { target: string; reachable: boolean }[];
  assert.equal(targets.find(({ target }) => target === "broker")?.reachable, true);
  assert.equal(outcome.severity, "ok");
});

test("what answers and is no flow server is an error", async () => {
  const odd = await startHttpServer((_, response) => response.end("<html>"));
  const outcome = await (await doctorOf({ url: odd.origin })).detect({}, SIGNAL);
  await odd.close();
  assert.equal(outcome.severity, "error");
  assert.match(String(outcome.data["error"]), /not as a flow server answers. Is http.* a flow server of this version/);
});

test("a refusal says which token is needed", async () => {
  const strict = await startHttpServer((_, response) => {
    response.statusCode = 401;
    response.end(JSON.stringify({ error: "no token", code: "UNAUTHENTICATED", request_id: "1" }));
  });
  const outcome = await (await doctorOf({ url: strict.origin })).repair_trigger_reaper({}, SIGNAL);
  await strict.close();
  assert.match(String(outcome.data["error"]), /operator's token: FLOW_SERVER_TOKEN/);
});

async function started(host: string, settings: Record<string, string>) {
  const lifecycle = createLifecycle();
  const parts = { host, port: 0, folder: tmpdir(), version: "0.0.0-test", logger: recordLog(), lifecycle };
  try {
    const { url } = await startDoctor({ ...parts, config: loadConfig(settings) });
    const { status } = await fetch(`${url.replace("0.0.0.0", "127.0.0.1")}/tools`);
    return status;
  } finally {
    await lifecycle.stop();
  }
}

test("without a token the doctor listens on this machine alone", async () => {
  assert.equal(await started("127.0.0.1", {}), 200);
  await assert.rejects(started("0.0.0.0", {}), { code: "INVALID_SETTING", message: /Set FLOW_DOCTOR_TOKEN/ });
  assert.equal(await started("0.0.0.0", { FLOW_AUTH_DISABLED: "true" }), 200);
});

test("beyond it, and wherever a token is set, callers must have one: the doctor's, else the operator's", async () => {
  assert.equal(await started("0.0.0.0", { FLOW_DOCTOR_TOKEN: "d".repeat(32) }), 401);
  assert.equal(await started("127.0.0.1", { FLOW_SERVER_TOKEN: "s" }), 401);
});
