import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { startHttpServer } from "../../support/servers/http-server.ts";
import { CLIENT_ID, startIdentityProvider } from "../../support/servers/identity-provider.ts";
import { folderWith } from "../../support/service/cli-process.ts";
import { startCommand } from "../in-process.ts";
import { startPlayingGateway } from "../playing-gateway.ts";

async function setup(t: TestContext, issuer: string, more: readonly string[] = []) {
  const gateway = await startPlayingGateway(t);
  const folder = await folderWith(t, {});
  const environment = { HOME: folder, XDG_CONFIG_HOME: join(folder, "settings"), FLOW_IDP_CLIENT_ID: CLIENT_ID };
  const where = ["--gateway", gateway.origin, "--issuer", issuer, "--domain", "idp.example"];
  return { gateway, login: startCommand(folder, ["login", ...where, ...more], environment) };
}

async function startProvider(t: TestContext) {
  const provider = await startIdentityProvider();
  t.after(() => provider.close());
  provider.visitor = { sub: "ada", email: "ada@example.com", name: "Ada" };
  return provider;
}

const ADDRESS = /^ {2}(http\S+)$/m;

async function addressOf(login: { untilStderr(pattern: RegExp): Promise<RegExpExecArray> }): Promise<URL> {
  return new URL((await login.untilStderr(ADDRESS))[1] ?? "");
}

test("a login in a browser brings the provider's ID token to the gateway", async (t) => {
  const provider = await startProvider(t);
  const { gateway, login } = await setup(t, provider.issuer);
  const page = await provider.browse((await addressOf(login)).href);
  assert.match(page, /^Thank you\. The rest happens in the terminal/);
  const { code, stderr } = await login.ended;
  assert.equal(code, 0, stderr);
  const { idp_token, idp_domain } = JSON.parse(gateway.requests[0]?.body ?? "{}") as Record<string, string>;
  const claims = Buffer.from(idp_token?.split(".")[1] ?? "", "base64url").toString("utf8");
  const { iss, aud, email, email_verified } = JSON.parse(claims) as Record<string, unknown>;
  assert.deepEqual([iss, aud, email, email_verified], [provider.issuer, CLIENT_ID, "ada@example.com", true]);
  assert.equal(idp_domain, "idp.example");
});

test("an answer without this login's state, or from another provider, is refused, and the wait continues", async (t) => {
  const provider = await startProvider(t);
  const { gateway, login } = await setup(t, provider.issuer);
  const address = await addressOf(login);
  const redirect = address.searchParams.get("redirect_uri") ?? "";
  const state = address.searchParams.get("state") ?? "";
  for (const [query, status] of [
    ["code=forged", 400],
    ["code=forged&state=guessed", 400],
    [`code=forged&state=${state}&iss=https%3A%2F%2Fother.example`, 400],
    // This provider names itself in every answer (RFC 9207).
    [`code=forged&state=${state}`, 400],
    ["error=access_denied", 400],
  ] as const) {
    assert.equal((await fetch(`${redirect}?${query}`)).status, status, query);
  }
  assert.equal((await fetch(new URL("/", redirect))).status, 404);
  assert.equal((await fetch(redirect, { method: "POST" })).status, 404);
  await provider.browse(address.href);
  assert.equal((await login.ended).code, 0);
  assert.equal(gateway.requests.length, 1);
});

test("a forged code with the right state is refused by the provider, and nothing reaches the gateway", async (t) => {
  const provider = await startProvider(t);
  const { gateway, login } = await setup(t, provider.issuer);
  const address = await addressOf(login);
  const query = new URLSearchParams({
    code: "forged",
    state: address.searchParams.get("state") ?? "",
    iss: provider.issuer,
  });
  await fetch(`${address.searchParams.get("redirect_uri") ?? ""}?${query}`);
  const { code, stderr } = await login.ended;
  assert.equal(code, 1);
  assert.match(stderr, /refused the login: grant request is invalid/);
  assert.equal(gateway.requests.length, 0);
});

for (const [what, claims, says] of [
  ["nonce", { nonce: "other" }, /answered with the token of another login/],
  ["audience", { aud: "other-app" }, /answered with the token of another login/],
  ["issuer", { iss: "https://idp.example" }, /answered with the token of another login/],
  ["time", { exp: 1_000 }, /answered with the token of another login/],
  ["subject", { sub: 7 }, /does not exchange codes/],
] as const) {
  test(`an ID token with another ${what} is not sent to the gateway`, async (t) => {
    let nonce: string | null = null;
    const provider = await startHttpServer((request, response) => {
      const now = Math.floor(Date.now() / 1_000);
      const good = { iss: provider.origin, aud: CLIENT_ID, sub: "ada", iat: now, exp: now + 60, nonce };
      const token = [{ alg: "RS256" }, { ...good, ...claims }, "signature"]
        .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
        .join(".");
      response.setHeader("content-type", "application/json");
      const isDiscovery = request.url.startsWith("/.well-known/");
      const endpoints = {
        jwks_uri: `${provider.origin}/jwks`,
        authorization_endpoint: `${provider.origin}/auth`,
        token_endpoint: `${provider.origin}/token`,
      };
      const tokens = { id_token: token, access_token: "x", token_type: "Bearer" };
      response.end(JSON.stringify(isDiscovery ? { issuer: provider.origin, ...endpoints } : tokens));
    });
    t.after(() => provider.close());
    const { gateway, login } = await setup(t, provider.origin);
    const { searchParams } = await addressOf(login);
    nonce = searchParams.get("nonce");
    await fetch(`${searchParams.get("redirect_uri") ?? ""}?code=c&state=${searchParams.get("state") ?? ""}`);
    const { code, stderr } = await login.ended;
    assert.equal(code, 1, stderr);
    assert.match(stderr, says);
    assert.equal(gateway.requests.length, 0);
  });
}

test("a login refused in the browser is reported on the command line", async (t) => {
  const provider = await startProvider(t);
  provider.visitor = undefined;
  const { login } = await setup(t, provider.issuer);
  assert.match(await provider.browse((await addressOf(login)).href), /^The login was refused/);
  const { code, stderr } = await login.ended;
  assert.equal(code, 1);
  assert.match(stderr, /The identity provider refused the login: No, thank you$/m);
});

test("Ctrl-C ends the wait for a browser", async (t) => {
  const provider = await startProvider(t);
  const { login } = await setup(t, provider.issuer);
  await addressOf(login);
  login.interrupt();
  const { code, stderr } = await login.ended;
  assert.equal(code, 130);
  assert.match(stderr, /flow: login was interrupted$/m);
});

test("a port in use is reported", async (t) => {
  const provider = await startProvider(t);
  const taken = await startHttpServer(() => {});
  t.after(() => taken.close());
  const { login } = await setup(t, provider.issuer, ["--port", String(taken.port)]);
  const { code, stderr } = await login.ended;
  assert.equal(code, 2);
  assert.match(stderr, /Cannot wait for the browser at port \d+: .*EADDRINUSE/);
});

test("an address that describes another provider, or none, is not asked for a login", async (t) => {
  const other = await startHttpServer((request, response) => {
    const issuer = request.url.startsWith("/a/") ? "https://idp.example" : 7;
    const endpoints = { authorization_endpoint: `${other.origin}/auth`, token_endpoint: `${other.origin}/token` };
    response.end(JSON.stringify({ issuer, ...endpoints }));
  });
  t.after(() => other.close());
  for (const path of ["/a", "/b"]) {
    const { login } = await setup(t, other.origin + path);
    const { code, stderr } = await login.ended;
    assert.equal(code, 1);
    assert.match(stderr, /does not describe an identity provider of this address: is it --issuer\?/);
  }
  await other.close();
  const { login } = await setup(t, other.origin);
  const { code, stderr } = await login.ended;
  assert.equal(code, 1);
  assert.match(stderr, /The identity provider does not answer at .*ECONNREFUSED/);
});

test("a provider is asked by https, but on this machine", async (t) => {
  const { login } = await setup(t, "http://idp.example");
  const { code, stderr } = await login.ended;
  assert.equal(code, 2);
  assert.match(stderr, /The identity provider must be an https address, got 'http:\/\/idp\.example'/);
});
