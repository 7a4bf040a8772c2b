import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { after, test } from "node:test";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { Agent, request } from "undici";
import { tokenSha256 } from "../../../src/platform/crypto/token.ts";
import type { LoginInput } from "../../../src/schema/api/gateway.ts";
import {
  CALLBACK_TOKEN,
  json,
  jsonOf,
  startFakeServer,
  startTestGateway,
} from "../../support/service/gateway-process.ts";

const DOMAIN = "idp.example";
const ISSUER = "https://idp.example";
const { publicKey, privateKey } = await generateKeyPair("ES256");
const JWKS = { keys: [{ ...(await exportJWK(publicKey)), kid: "one", alg: "ES256", use: "sig" }] };

/** An ID token of a person. */
function idToken(name: string, claims: Record<string, unknown> = {}): Promise<string> {
  return new SignJWT({ email: `${name}@example.com`, email_verified: true, name, ...claims })
    .setProtectedHeader({ alg: "ES256", kid: "one" })
    .setIssuer(ISSUER)
    .setAudience("app")
    .setSubject(name)
    .setIssuedAt()
    .setExpirationTime("10m")
    .sign(privateKey);
}

/* Without limits of time: how long it takes is none of these tests' business. */
const agent = new Agent({ connect: { timeout: 0 }, headersTimeout: 0, bodyTimeout: 0 });
after(() => agent.destroy());

async function post(url: string, body: object, headers: Record<string, string> = {}) {
  const answer = await request(url, { method: "POST", headers, body: JSON.stringify(body), dispatcher: agent });
  return { status: answer.statusCode, body: await answer.body.json() };
}

interface Started {
  id: string;
  input: LoginInput;
}

/** A gateway, its provider, and a server on which `play` does what the playbook of logins does. */
async function setup(
  t: Parameters<typeof startFakeServer>[0],
  play: (started: Started, callback: (body?: object) => Promise<number>) => unknown,
) {
  const sessions = new Map<string, object>();
  const keys = new Map<string, string>();
  let last = 0;
  const server = await startFakeServer(t, async (request: IncomingMessage, response: ServerResponse) => {
    if (request.url === "/jwks") return json(response, 200, JWKS);
    if (request.url?.includes("/result?") === true) return;
    if (request.url === "/api/auth/me") {
      const me = sessions.get(String(request.headers["x-flow-session"]));
      return me === undefined
        ? json(response, 401, { error: "no session", code: "UNAUTHENTICATED" })
        : json(response, 200, me);
    }
    if (request.url === "/api/auth/sessions/refused") return json(response, 200, { status: "success" });
    const { workload: input } = await jsonOf<{ workload: LoginInput }>(request);
    const key = String(request.headers["idempotency-key"]);
    if (keys.has(key))
      return json(response, 422, { error: "used", code: "INVALID_INPUT", detail: { idempotency_key: key } });
    last += 1;
    const id = String(last);
    keys.set(key, id);
    json(response, 200, { execution_id: id, status: "RUNNING", path: "login", version: 1, catalog_id: "1" });
    const user = { user_id: last, email: input.email, display_name: input.display_name, roles: [] };
    const expires = new Date(Date.now() + 3_600_000).toISOString();
    sessions.set(input.token_sha256, { ...user, kind: "user", permissions: [], actions: [], expires_at: expires });
    await play({ id, input }, async (body = { user }) => {
      const about = { request_id: input.request_id, execution_id: id };
      const authorization = `Bearer ${CALLBACK_TOKEN}`;
      return (await post(`${input.gateway_url}/api/internal/callback`, { ...about, ...body }, { authorization }))
        .status;
    });
  });
  const provider = { issuer: ISSUER, jwks_uri: `${server.url}/jwks`, audience: "app" };
  const gateway = await startTestGateway(t, {
    FLOW_BASE_URL: server.url,
    FLOW_IDP_CONFIG: JSON.stringify({ [DOMAIN]: provider }),
    FLOW_GATEWAY_LOGINS_PER_MINUTE: "100000",
    // Longer than any machine takes.
    FLOW_GATEWAY_LOGIN_SECONDS: "600",
  });
  const login = async (token: string) => {
    const { status, body } = await post(`${gateway.url}/api/auth/login`, { idp_token: token, idp_domain: DOMAIN });
    return { ...(body as { session_token: string; user: { email: string }; error: string }), status };
  };
  return { gateway, server, sessions, login };
}

test("500 logins are in flight at once, and each gets the session of its own person", async (t) => {
  const LOGINS = 500;
  const waiting: (() => Promise<number>)[] = [];
  const { login, sessions } = await setup(t, async (_, callback) => {
    waiting.push(() => callback());
    // None is called back before all have been started; then the last one first.
    if (waiting.length === LOGINS) await Promise.all(waiting.toReversed().map((call) => call()));
  });
  const tokens = await Promise.all(Array.from({ length: LOGINS }, (_, index) => idToken(`user-${index}`)));
  const answers = await Promise.all(tokens.map(login));
  assert.deepEqual(
    answers.map(({ status, user }) => [status, user?.email]),
    tokens.map((_, index) => [200, `user-${index}@example.com`]),
  );
  assert.equal(new Set(answers.map(({ session_token: token }) => token)).size, LOGINS);
  for (const { session_token: token } of answers) assert.ok(sessions.has(tokenSha256(token)));
});

test("an ID token logs in once, also when it is sent twice at the same moment", async (t) => {
  const { login, server } = await setup(t, (_, callback) => callback());
  const token = await idToken("ada");
  const both = await Promise.all([login(token), login(token)]);
  assert.deepEqual(both.map(({ status }) => status).toSorted(), [200, 401]);
  const again = await login(token);
  assert.deepEqual([again.status, again.session_token], [401, undefined]);
  assert.match(again.error, /was used for a login before/);
  assert.ok(server.asked.includes("POST /api/execute"));
});

test("a token that is not believed starts nothing", async (t) => {
  const { login, server } = await setup(t, (_, callback) => callback());
  const good = await idToken("ada");
  const [head = "", , signature = ""] = good.split(".");
  const forged = Buffer.from(JSON.stringify({ email: "root@example.com" })).toString("base64url");
  for (const token of [`${head}.${forged}.${signature}`, await idToken("ada", { email_verified: false }), "a.b.c"])
    assert.equal((await login(token)).status, 401);
  assert.equal(server.asked.includes("POST /api/execute"), false);
});

test("a callback without an address is 'Invalid email' for both sides, with 500", async (t) => {
  const told: number[] = [];
  const { login } = await setup(t, async (_, callback) => told.push(await callback({ user: { user_id: 1 } })));
  const { status, error } = await login(await idToken("ada"));
  assert.deepEqual([status, error], [500, "Invalid email"]);
});

test("an inactive user gets 403 with the reason", async (t) => {
  const refusal = { status: "refused", code: "FORBIDDEN", error: "This account is switched off" };
  const { login } = await setup(t, (_, callback) => callback(refusal));
  const { status, error } = await login(await idToken("ada"));
  assert.deepEqual([status, error], [403, "This account is switched off"]);
});

test("a forged callback logs no user in: the server has no such session, or one of another user", async (t) => {
  const { login, sessions } = await setup(t, async ({ input }, callback) => {
    sessions.delete(input.token_sha256);
    await callback();
  });
  assert.equal((await login(await idToken("ada"))).status, 500);
});

test("no token stands in the log, or in what the playbook gets", async (t) => {
  const inputs: LoginInput[] = [];
  const { login, gateway } = await setup(t, ({ input }, callback) => {
    inputs.push(input);
    return callback();
  });
  const token = await idToken("ada");
  const { session_token: session } = await login(token);
  for (const text of [gateway.log(), JSON.stringify(inputs)]) {
    for (const secret of [token, session, CALLBACK_TOKEN]) assert.equal(text.includes(secret), false);
  }
});
