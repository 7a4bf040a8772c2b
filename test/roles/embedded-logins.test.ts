import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { DOMAIN, startIdentityProvider } from "../support/servers/identity-provider.ts";
import { folderWith } from "../support/service/cli-process.ts";
import { startServe } from "../support/service/serve.ts";

interface Line {
  level: string;
  msg: string;
}

test("with nothing set up: a first start has no line of trouble and none about logins", async (t) => {
  const folder = await folderWith(t, {});
  const server = await startServe(t, folder, {}, ["--role", "all"]);
  server.process.kill("SIGTERM");
  const { stderr } = await server.ended;
  const lines = stderr
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Line);
  assert.deepEqual(
    lines.filter(({ level, msg }) => !["debug", "info"].includes(level) || /log in|logins|pg_auth/.test(msg)),
    [],
  );
  const data = /Making a PostgreSQL data folder in ([^"]+)/.exec(stderr)?.[1] ?? "";
  assert.doesNotMatch(await readFile(join(data, "server.log"), "utf8"), /ERROR|FATAL/);
});

test("users log in to a server with the embedded database, also to one that had no accounts at first", async (t) => {
  const provider = await startIdentityProvider();
  t.after(() => provider.close());
  const folder = await folderWith(t, {});
  const first = await startServe(t, folder, {}, ["--role", "all"]);
  first.process.kill("SIGTERM");
  await first.ended;
  const settings = {
    FLOW_SERVER_TOKEN: "operator-of-the-tests",
    FLOW_WORKER_TOKEN: "worker-of-the-tests",
    FLOW_IDP_CONFIG: provider.config,
    FLOW_GATEWAY_PORT: "0",
    FLOW_GATEWAY_INTERNAL_PORT: "0",
    FLOW_GATEWAY_LOGIN_SECONDS: "120",
  };
  const server = await startServe(t, folder, settings, ["--role", "all"]);
  const idToken = await provider.idToken({ sub: "ada", email: "ada@example.com", name: "Ada Lovelace" });
  const response = await fetch(`${server.gatewayUrl}/api/auth/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ idp_token: idToken, idp_domain: DOMAIN }),
  });
  const body = (await response.json()) as { status: string; user: { email: string } };
  assert.equal(response.status, 200, JSON.stringify(body));
  assert.deepEqual([body.status, body.user.email], ["authenticated", "ada@example.com"]);
});
