import assert from "node:assert/strict";
import { Agent, request } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { tokenSha256 } from "../../../src/platform/crypto/token.ts";
import { readEvents } from "../../support/servers/sse.ts";
import { folderWith, startFlow } from "../../support/service/cli-process.ts";
import { json, OPERATOR, startFakeServer, startTestGateway } from "../../support/service/gateway-process.ts";

const TOKEN = "A".repeat(43);
const SESSION = { authorization: `Bearer ${TOKEN}` };
const ADA = { kind: "user", user_id: 1, email: "ada@example.com", display_name: "Ada", roles: ["viewer"] };
const ME = { ...ADA, permissions: [], actions: ["view"] };
const EXPIRES = new Date(Date.now() + 3_600_000).toISOString();

test("a call is passed on with its body, in the name of its session, and its answer comes back", async (t) => {
  const server = await startFakeServer(t, async (req, res) => {
    const { authorization, "x-flow-session": session, "x-flow-address": address, cookie } = req.headers;
    json(res, 201, { url: req.url, authorization, session, address, cookie, body: await text(req) });
  });
  const gateway = await startTestGateway(t, { FLOW_BASE_URL: `${server.url}/base` });
  const response = await fetch(`${gateway.url}/flow/execute?a=%2F`, {
    method: "POST",
    headers: { ...SESSION, cookie: "a=b", "x-flow-session": "forged", "x-flow-address": "192.0.2.1" },
    body: "the body",
  });
  assert.equal(response.status, 201);
  assert.deepEqual(await response.json(), {
    url: "/base/api/execute?a=%2F",
    authorization: `Bearer ${OPERATOR}`,
    session: tokenSha256(TOKEN),
    address: "127.0.0.1",
    body: "the body",
  });
  assert.doesNotMatch(gateway.log(), new RegExp(`canary|${TOKEN}`));
});

test("a body without a length streams to the server while it is sent, and its answer streams back", async (t) => {
  const server = await startFakeServer(t, (req, res) => {
    res.writeHead(200, { "content-type": "text/plain" });
    // Each part is answered before the next one is sent.
    req.on("data", (part: Buffer) => res.write(`got ${part.toString()};`));
    req.on("end", () => res.end("end"));
  });
  const gateway = await startTestGateway(t, { FLOW_BASE_URL: server.url });
  const agent = new Agent();
  t.after(() => agent.destroy());
  const sent = request(`${gateway.url}/flow/echo`, { method: "POST", headers: SESSION, agent });
  const answered = new Promise<import("node:http").IncomingMessage>((resolve, reject) => {
    sent.once("response", resolve);
    sent.once("error", reject);
  });
  sent.write("one");
  const answer = await answered;
  const parts = answer[Symbol.asyncIterator]();
  assert.equal(String((await parts.next()).value), "got one;");
  sent.write("two");
  assert.equal(String((await parts.next()).value), "got two;");
  sent.end();
  let rest = "";
  for (let part = await parts.next(); part.done !== true; part = await parts.next()) rest += String(part.value);
  assert.equal(rest, "end");
});

test("live events come through one by one; who leaves is gone at the server too; a gateway that stops ends them", async (t) => {
  const streams: import("node:http").ServerResponse[] = [];
  const left: Promise<unknown>[] = [];
  const server = await startFakeServer(t, (_, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" }).write("data: 1\n\n");
    left.push(new Promise((resolve) => res.once("close", resolve)));
    streams.push(res);
  });
  const gateway = await startTestGateway(t, { FLOW_BASE_URL: server.url });
  const open = async () => readEvents(await fetch(`${gateway.url}/flow/executions/1/stream`, { headers: SESSION }));
  const [one, two] = [await open(), await open()];
  assert.deepEqual([(await one.next())?.data, (await two.next())?.data], [1, 1]);
  for (const stream of streams) stream.write("data: 2\n\n");
  assert.deepEqual([(await one.next())?.data, (await two.next())?.data], [2, 2]);
  await one.leave();
  await Promise.race(left);
  const last = two.next();
  await gateway.stop();
  assert.equal(await last, undefined);
  await Promise.all(left);
});

test("a validated session is cached until it changes, or changes cannot be received", async (t) => {
  let valid = true;
  const server = await startFakeServer(t, (_, res) =>
    valid ? json(res, 200, { ...ME, expires_at: EXPIRES }) : json(res, 401, { error: "no", code: "UNAUTHENTICATED" }),
  );
  const gateway = await startTestGateway(t, { FLOW_BASE_URL: server.url });
  const validate = async () => (await fetch(`${gateway.url}/api/auth/session`, { headers: SESSION })).status;
  /** Validates until the server is no longer asked, or (`asked`) is asked again. */
  const until = async (asked: boolean) => {
    for (;;) {
      const before = server.asked.length;
      const status = await validate();
      if (server.asked.length > before === asked) return status;
    }
  };
  assert.equal(await until(false), 200, "once changes are heard of, the answer is believed");
  valid = false;
  server.change({ tokens: [tokenSha256(TOKEN)] });
  assert.equal(await until(true), 401);
  valid = true;
  assert.equal(await until(false), 200);
  server.breakOff();
  assert.equal(await until(true), 200);
  valid = false;
  assert.equal(await validate(), 401, "asked each time");
});

test("an unavailable server is reported as such, on every route that needs it, and the gateway lives", async (t) => {
  const server = await startFakeServer(t, (_, res) => json(res, 200, {}));
  await server.close();
  const gateway = await startTestGateway(t, { FLOW_BASE_URL: server.url });
  for (const [path, method] of [
    ["/flow/executions", "GET"],
    ["/flow/execute", "POST"],
    ["/flow/health", "GET"],
    ["/mcp", "POST"],
    ["/api/auth/session", "GET"],
    ["/api/auth/logout", "POST"],
  ] as const) {
    const response = await fetch(`${gateway.url}${path}`, { method, headers: SESSION });
    const body = (await response.json()) as { error: string; code: string; request_id: string };
    assert.deepEqual([response.status, body.code], [502, "SERVER_UNREACHABLE"], path);
    assert.equal(body.request_id, response.headers.get("x-request-id"));
  }
  assert.equal(await (await fetch(`${gateway.url}/health`)).text(), "ok");
});

test("a domain that is not in the list is refused by its name", async (t) => {
  const gateway = await startTestGateway(t, {
    FLOW_IDP_CONFIG: '{"a.example":{"issuer":"i","jwks_uri":"http://127.0.0.1:1/jwks","audience":"a"}}',
  });
  const body = JSON.stringify({ idp_token: "x.y.z", idp_domain: "b.example" });
  const response = await fetch(`${gateway.url}/api/auth/login`, { method: "POST", body });
  assert.equal(response.status, 403);
  assert.match(((await response.json()) as { error: string }).error, /'b\.example'.*FLOW_IDP_DOMAINS/);
  const metrics = await (await fetch(`${gateway.callbackUrl}/metrics`)).text();
  assert.match(metrics, /^flow_gateway_logins_total\{outcome="FORBIDDEN"\} 1$/m);
});

test("a caller who leaves before the answer is gone at the server too", async (t) => {
  let arrive = () => {};
  const arrived = new Promise<void>((resolve) => (arrive = resolve));
  let leave = () => {};
  const left = new Promise<void>((resolve) => (leave = resolve));
  const server = await startFakeServer(t, (_, res) => {
    res.once("close", leave);
    arrive();
  });
  const gateway = await startTestGateway(t, { FLOW_BASE_URL: server.url });
  const leaving = new AbortController();
  const call = fetch(`${gateway.url}/flow/slow`, { headers: SESSION, signal: leaving.signal });
  await arrived;
  leaving.abort();
  await assert.rejects(call);
  await left;
});

test("what is under way when the gateway stops is answered", async (t) => {
  let answer = () => {};
  let arrive = () => {};
  const arrived = new Promise<void>((resolve) => (arrive = resolve));
  const server = await startFakeServer(t, (_, res) => {
    answer = () => json(res, 200, { done: true });
    arrive();
  });
  const gateway = await startTestGateway(t, { FLOW_BASE_URL: server.url });
  const call = fetch(`${gateway.url}/flow/slow`, { headers: SESSION });
  await arrived;
  const stopping = gateway.stop();
  answer();
  assert.deepEqual(await (await call).json(), { done: true });
  await stopping;
});

test("callbacks come in on a listener of their own, which the public one knows nothing of", async (t) => {
  const gateway = await startTestGateway(t, {});
  assert.notEqual(new URL(gateway.callbackUrl).port, new URL(gateway.url).port);
  const init = { method: "POST", body: "{}" };
  assert.equal((await fetch(`${gateway.callbackUrl}/api/internal/callback`, init)).status, 401);
  assert.equal((await fetch(`${gateway.url}/api/internal/callback`, init)).status, 404);
  assert.equal((await fetch(`${gateway.callbackUrl}/flow/health`)).status, 404);
  const announced = await startTestGateway(t, { FLOW_GATEWAY_INTERNAL_URL: "http://10.1.2.3:8091" });
  assert.equal(announced.callbackUrl, "http://10.1.2.3:8091");
});

test("what is no HTTP is 400 in the shape of every error", async (t) => {
  const gateway = await startTestGateway(t, {});
  const socket = connect(Number(new URL(gateway.url).port), "127.0.0.1");
  socket.end("GET /health HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n");
  const answer = await text(socket);
  assert.match(answer, /^HTTP\/1\.1 400 /);
  assert.match(answer, /"code":"INVALID_INPUT"/);
});

for (const [what, settings, host, says] of [
  [
    "bypass beyond this machine",
    { GATEWAY_AUTH_BYPASS: "true" },
    "0.0.0.0",
    /everyone who can reach it could run anything/,
  ],
  ["domains without an audience", { FLOW_IDP_DOMAINS: "a.example" }, "127.0.0.1", /needs FLOW_IDP_AUDIENCE/],
  ["no token beyond this machine", { FLOW_SERVER_TOKEN: "" }, "0.0.0.0", /needs FLOW_SERVER_TOKEN/],
  [
    "callbacks beyond this machine without a token",
    { FLOW_SERVER_TOKEN: "", FLOW_GATEWAY_INTERNAL_HOST: "0.0.0.0" },
    "127.0.0.1",
    /needs FLOW_SERVER_TOKEN/,
  ],
  [
    "callbacks beyond this machine with a short token",
    { FLOW_SERVER_TOKEN: "s".repeat(31), FLOW_GATEWAY_INTERNAL_HOST: "0.0.0.0" },
    "127.0.0.1",
    /FLOW_SERVER_TOKEN has fewer than 32 characters.*openssl rand -hex 32/,
  ],
] as const) {
  test(`a gateway does not start with ${what}`, async (t) => {
    await assert.rejects(startTestGateway(t, settings, host), { code: "INVALID_SETTING", message: says });
  });
}

test("bypass is logged as a warning, and a second setting allows it elsewhere", async (t) => {
  const settings = { GATEWAY_AUTH_BYPASS: "true", FLOW_GATEWAY_AUTH_BYPASS_ANYWHERE: "true" };
  const gateway = await startTestGateway(t, settings, "0.0.0.0");
  assert.match(gateway.log(), /"level":"warn".*GATEWAY_AUTH_BYPASS=true: AUTHENTICATION IS OFF/);
});

test("a gateway without possible logins, or without an allowed page, says so", async (t) => {
  const gateway = await startTestGateway(t, {});
  assert.match(gateway.log(), /no logins are possible: set FLOW_IDP_DOMAINS/);
  assert.match(gateway.log(), /no page but the gateway's own may call: set CORS_ALLOWED_ORIGINS/);
});

test("the public address is an allowed origin by itself, until origins are listed", async (t) => {
  const origin = { origin: "https://flow.example.com" };
  const allowed = async (settings: Readonly<Record<string, string>>) => {
    const gateway = await startTestGateway(t, { GATEWAY_PUBLIC_URL: "https://flow.example.com/x", ...settings });
    const response = await fetch(`${gateway.url}/health`, { headers: origin });
    return response.headers.get("access-control-allow-origin");
  };
  assert.equal(await allowed({}), "https://flow.example.com");
  assert.equal(await allowed({ CORS_ALLOWED_ORIGINS: "https://app.example.com" }), null);
});

test("'flow serve --role gateway' prints its address, and ends when it is stopped", async (t) => {
  const folder = await folderWith(t, {});
  const environment = { FLOW_GATEWAY_INTERNAL_PORT: "0", FLOW_BASE_URL: "http://127.0.0.1:1" };
  const { process: gateway, ended } = startFlow(folder, ["serve", "--role", "gateway", "--port", "0"], environment);
  t.after(() => gateway.kill("SIGKILL"));
  const said = await new Promise<string>((resolve, reject) => {
    gateway.stdout.once("data", (data) => resolve(String(data)));
    ended.then(({ stderr }) => reject(new Error(stderr)), reject);
  });
  const [, url = ""] =
    /^flow gateway is ready at (\S+), callbacks: http:\S+, server: http:\/\/127\.0\.0\.1:1\n$/.exec(said) ?? [];
  assert.equal(await (await fetch(`${url}/health`)).text(), "ok");
  gateway.kill("SIGTERM");
  assert.equal((await ended).code, 0);
});
