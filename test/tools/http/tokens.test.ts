import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createEgressGuard } from "../../../src/platform/http/egress.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import type { Credential, CredentialTokens } from "../../../src/tools/contract/tool.ts";
import { createHttpTool } from "../../../src/tools/http/http.ts";
import { createMcpTool } from "../../../src/tools/mcp/mcp.ts";
import { startHttpServer, type TestHttpServer } from "../../support/servers/http-server.ts";
import { toolCall } from "../../support/service/tool-call.ts";

// Credentials whose token is requested: `http` and `mcp` ask the worker for it, and tell it when one was not taken.

const egress = createEgressGuard({ allowPrivate: "all" });
const http = createHttpTool({ egress });
const mcp = createMcpTool({ egress });
let server: TestHttpServer;

before(async () => {
  server = await startHttpServer((request, response) => {
    response.writeHead(request.headers["authorization"] === "Bearer good" ? 200 : 401);
    response.end("{}");
  });
});
after(async () => {
  await http.close?.();
  await mcp.close?.();
  await server.close();
});

/** Gives every credential the token, and notes what it is asked and told. */
function tokens(token: string | FlowError) {
  const asked: string[] = [];
  const forgotten: string[] = [];
  const given: CredentialTokens = {
    of(credential) {
      asked.push(credential.name);
      return token instanceof FlowError ? Promise.reject(token) : Promise.resolve(token);
    },
    forget: (text) => void forgotten.push(text),
  };
  return { given, asked, forgotten };
}

function run(tool: typeof http, by: Credential, token: string | FlowError = "good", more: JsonObject = {}) {
  const { given, asked, forgotten } = tokens(token);
  const config =
    tool === http ? { url: server.origin, ...more } : { endpoint: server.origin, method: "health", ...more };
  const result = tool.run(toolCall(config, { auth: { [by.name]: by, default: by }, tokens: given }));
  return { result, asked, forgotten };
}

const CLIENT = {
  name: "crm",
  type: "oauth2",
  data: { token_url: "https://x/token", client_id: "c", client_secret: "s" },
};
const ACCOUNT = {
  name: "sa",
  type: "service_account",
  data: { client_email: "a", private_key: "k", token_uri: "https://x" },
};
const ADC = { name: "inline", type: "custom", data: { source: "adc" } };

for (const by of [CLIENT, ACCOUNT, ADC]) {
  test(`an http task with ${by.type} ${by.name} carries the token that was requested`, async () => {
    const { result, asked, forgotten } = run(http, by);
    assert.equal((await result).status, "ok");
    assert.deepEqual([asked, forgotten], [[by.name], []]);
  });
}

test("a credential that has its token in it is not asked for one", async () => {
  const { result, asked } = run(http, { name: "o", type: "oauth2", data: { access_token: "good" } });
  assert.equal((await result).status, "ok");
  assert.deepEqual(asked, []);
});

test("a token that is answered with 401 is forgotten, so that the next run gets a fresh one", async () => {
  const { result, forgotten } = run(http, CLIENT, "stale");
  assert.equal((await result).error?.code, "HTTP_401");
  assert.deepEqual(forgotten, ["stale"]);
});

test("an mcp task does the same", async () => {
  const { result, asked, forgotten } = run(mcp, ACCOUNT, "stale");
  assert.equal((await result).error?.code, "HTTP_401");
  assert.deepEqual([asked, forgotten], [["sa"], ["stale"]]);
});

for (const [code, kind, retryable] of [
  ["UNAUTHENTICATED", "auth", false],
  ["UNAVAILABLE", "connection", true],
  ["INVALID_INPUT", "configuration", false],
] as const) {
  test(`a token that cannot be had (${code}) is an error of kind ${kind}, and no request is made`, async () => {
    const requests = server.requests.length;
    const { result } = run(http, CLIENT, new FlowError(code, "the endpoint said no"));
    const { error } = await result;
    assert.deepEqual([error?.kind, error?.retryable, error?.message], [kind, retryable, "the endpoint said no"]);
    assert.equal(server.requests.length, requests);
  });
}

test("of several credentials the one of the task's own kind is used alone", async () => {
  const other = { name: "key", type: "api_key", data: { key: "k" } };
  const { given } = tokens("good");
  const call = toolCall({ url: server.origin }, { auth: { http: CLIENT, other, default: CLIENT }, tokens: given });
  assert.equal((await http.run(call)).status, "ok");
  assert.equal(server.requests.at(-1)?.headers["x-api-key"], undefined);
});
