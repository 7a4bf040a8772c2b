import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfig } from "../../../src/platform/config/config.ts";
import { callbackToken } from "../../../src/platform/crypto/callback-token.ts";
import { createSecret } from "../../../src/platform/crypto/secret.ts";

test("without settings there are no logins, no page may call, and nothing is bypassed", () => {
  const config = loadConfig({});
  assert.deepEqual(
    [config.gatewayPort, config.gatewayInternalPort, config.gatewayServerUrl, config.gatewayPublicUrl],
    [8090, 8091, undefined, undefined],
  );
  assert.deepEqual([config.corsOrigins, config.authBypass, config.authBypassAnywhere], [undefined, false, false]);
  assert.deepEqual([config.idpDomains, config.idpAudience, config.idpName], [[], undefined, "idp"]);
  assert.deepEqual([config.idpProviders.size, config.trustedProxies], [0, []]);
  assert.deepEqual(
    [config.loginsPerMinute, config.loginMs, config.sessionMs, config.sessionIdleMs],
    [60, 15_000, 43_200_000, 7_200_000],
  );
});

test("origins are taken as browsers send them, and domains whatever their letters' case", () => {
  const config = loadConfig({
    CORS_ALLOWED_ORIGINS: "https://App.Example.com/, http://localhost:5173,https://flow.example.com:443",
    FLOW_IDP_DOMAINS: "Login.Example.com, tenant.example.org:8443",
    FLOW_BASE_URL: "http://flow-server:8082/",
  });
  assert.deepEqual(config.corsOrigins, [
    "https://app.example.com",
    "http://localhost:5173",
    "https://flow.example.com",
  ]);
  assert.deepEqual(config.idpDomains, ["login.example.com", "tenant.example.org:8443"]);
  assert.equal(config.gatewayServerUrl, "http://flow-server:8082");
});

test("an empty list of origins lets no page call", () => {
  assert.deepEqual(loadConfig({ CORS_ALLOWED_ORIGINS: "," }).corsOrigins, []);
});

test("providers without discovery are read from JSON; plain http is for this machine", () => {
  const provider = { issuer: "http://127.0.0.1:1", jwks_uri: "http://127.0.0.1:1/jwks", audience: "app" };
  const { idpProviders } = loadConfig({ FLOW_IDP_CONFIG: JSON.stringify({ "Local.Example": provider }) });
  assert.deepEqual(
    [...idpProviders],
    [["local.example", { issuer: "http://127.0.0.1:1", jwksUri: "http://127.0.0.1:1/jwks", audience: "app" }]],
  );
});

test("a provider without discovery may name its pages, and itself", () => {
  const at = "http://127.0.0.1:1";
  const pages = { name: "Staff", authorization_endpoint: `${at}/auth`, token_endpoint: `${at}/token` };
  const provider = { issuer: at, jwks_uri: `${at}/jwks`, audience: "app", ...pages };
  const { idpProviders } = loadConfig({ FLOW_IDP_CONFIG: JSON.stringify({ "local.example": provider }) });
  const { name, authorizationEndpoint, tokenEndpoint } = idpProviders.get("local.example") ?? {};
  assert.deepEqual([name, authorizationEndpoint, tokenEndpoint], ["Staff", `${at}/auth`, `${at}/token`]);
  const unsafe = { ...provider, token_endpoint: "http://idp.example/token" };
  assert.throws(() => loadConfig({ FLOW_IDP_CONFIG: JSON.stringify({ "local.example": unsafe }) }), {
    message: /token_endpoint of local\.example must begin with https/,
  });
});

for (const [name, value, says] of [
  ["CORS_ALLOWED_ORIGINS", "*", /no wildcards/],
  ["CORS_ALLOWED_ORIGINS", "https://*.example.com", /no wildcards/],
  ["CORS_ALLOWED_ORIGINS", "https://app.example.com/login", /an origin is/],
  ["CORS_ALLOWED_ORIGINS", "null", /an origin is/],
  ["CORS_ALLOWED_ORIGINS", "https://user@app.example.com", /an origin is/],
  ["GATEWAY_AUTH_BYPASS", "yes", /must be true or false/],
  ["FLOW_GATEWAY_PORT", "80a", /must be a port/],
  ["GATEWAY_PUBLIC_URL", "flow.example.com", /must be an http or https address/],
  ["FLOW_GATEWAY_TRUSTED_PROXIES", "10.0.0.0/33", /no address and no CIDR/],
  ["FLOW_IDP_DOMAINS", "https://login.example.com", /is no domain/],
  ["FLOW_IDP_NAME", "../idp", /must be at most 64/],
  ["FLOW_IDP_CONFIG", "[]", /must be a JSON object/],
  ["FLOW_IDP_CONFIG", '{"a.example": 1}', /a\.example must be an object/],
  ["FLOW_IDP_CONFIG", '{"a.example": {"jwks_uri": "https://a.example/jwks", "audience": "x"}}', /must have issuer/],
  [
    "FLOW_IDP_CONFIG",
    '{"a.example": {"issuer": "i", "jwks_uri": "http://a.example/jwks", "audience": "x"}}',
    /must begin with https/,
  ],
] as const) {
  test(`${name}=${value} is refused`, () => {
    assert.throws(() => loadConfig({ [name]: value }), { code: "INVALID_SETTING", message: says });
  });
}

test("the callback token is derived from the server's token, differs from it, and from that of another server", () => {
  const token = callbackToken(createSecret("operator"));
  assert.equal(token.reveal(), callbackToken(createSecret("operator")).reveal());
  assert.doesNotMatch(token.reveal(), /operator/);
  assert.notEqual(token.reveal(), callbackToken(createSecret("other")).reveal());
});
