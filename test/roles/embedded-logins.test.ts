import assert from "node:assert/strict";
import { test } from "node:test";
import { DOMAIN, startIdentityProvider } from "../support/servers/identity-provider.ts";
import { folderWith } from "../support/service/cli-process.ts";
import { startServe } from "../support/service/serve.ts";

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
  const authorization = `Bearer ${settings.FLOW_SERVER_TOKEN}`;
  const listed = await fetch(`${server.url}/api/credentials`, { headers: { authorization } });
  const { items } = (await listed.json()) as { items: { name: string }[] };
  assert.deepEqual(
    items.map(({ name }) => name),
    // The service's own: with them the playbooks of logins answer to the gateway and reach their tables.
    ["gateway_callback", "pg_auth"],
  );
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
