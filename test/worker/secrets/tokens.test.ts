import assert from "node:assert/strict";
import { test } from "node:test";
import { formFields, secretBench } from "../../support/service/secret-source.ts";
import { setup } from "../support/bench.ts";

// `token(…)` of templates (language document, section 4.7), and the tokens that tasks are given.

const CLIENT = (origin: string) => ({
  crm: { type: "oauth2", data: { client_id: "c", client_secret: "s", token_url: `${origin}/token` } },
  plain: { type: "bearer", data: { token: "b" } },
  db: { type: "sqldb", data: { host: "h" } },
});

async function bench(t: Parameters<typeof setup>[0], status = 200) {
  let count = 0;
  const { server, source } = await secretBench(t, () => [status, { access_token: `t-${++count}`, expires_in: 100 }]);
  return { ...setup(t, { secretSource: source, credentials: CLIENT(server.origin) }), server };
}

const reading = (expression: string) => `workflow: [{ step: a, tool: { kind: http, url: "{{ ${expression} }}" } }]`;

for (const [expression, expected] of [
  ["token('crm')", "t-1"],
  ["'Bearer ' ~ token('crm')", "Bearer t-1"],
  ["token(credential='crm')", "t-1"],
  ["token('plain')", "b"],
  ["token({'credential': 'plain'})", "b"],
] as const) {
  test(`${expression} is ${expected}`, async (t) => {
    const { completed, calls } = await bench(t);
    await completed(reading(expression));
    assert.equal(calls[0]?.config["url"], expected);
  });
}

test("scopes go with the request, and each set of them is a token of its own", async (t) => {
  const { completed, calls, server } = await bench(t);
  await completed(reading("[token('crm', 'a b'), token('crm', scopes=['a', 'b']), token('crm')]"));
  assert.deepEqual(calls[0]?.config["url"], ["t-1", "t-1", "t-2"]);
  assert.equal(formFields(server.requests[0]?.body ?? "")["scope"], "a b");
});

test("all commands of a worker share one token", async (t) => {
  const { completed, calls, server } = await bench(t);
  await completed(`
workflow:
  - { step: a, tool: { kind: http, url: "{{ token('crm') }}" }, next: b }
  - { step: b, tool: { kind: http, url: "{{ token('crm') }}" } }
`);
  assert.deepEqual(
    calls.map(({ config }) => config["url"]),
    ["t-1", "t-1"],
  );
  assert.equal(server.requests.length, 1);
});

for (const [expression, kind, code, message] of [
  ["token('nobody')", "configuration", "NOT_FOUND", /There is no credential 'nobody'/],
  ["token()", "template", "TEMPLATE_ERROR", /token\(\) takes the name of a credential/],
  ["token('db')", "configuration", "INVALID_INPUT", /Credential 'db' of type sqldb gives no token/],
] as const) {
  test(`${expression} fails the task`, async (t) => {
    const { failed } = await bench(t);
    const { state } = await failed(reading(expression));
    assert.deepEqual([state.error?.kind, state.error?.code], [kind, code]);
    assert.match(state.error?.message ?? "", message);
  });
}

test("an endpoint that is down is a failure that may pass, and asked once for the task", async (t) => {
  const { failed, server } = await bench(t, 503);
  const { state } = await failed(reading("token('crm') ~ token('crm')"));
  assert.deepEqual([state.error?.kind, state.error?.code, state.error?.retryable], ["connection", "UNAVAILABLE", true]);
  assert.equal(server.requests.length, 1);
});

test("where nothing requests tokens, token() says so", async (t) => {
  const { failed } = setup(t, { credentials: CLIENT("https://x") });
  const { state } = await failed(reading("token('crm')"));
  assert.match(state.error?.message ?? "", /Tokens of credentials cannot be requested here/);
});

test("a tool is given the tokens of the credentials that it has", async (t) => {
  const { server, source } = await secretBench(t, () => [200, { access_token: "canary-77aa", expires_in: 100 }]);
  const { failed } = setup(t, {
    secretSource: source,
    credentials: CLIENT(server.origin),
    tools: {
      async http(call) {
        const credential = call.auth["default"];
        assert.ok(credential !== undefined && call.tokens !== undefined);
        throw new Error(`refused ${await call.tokens.of(credential)}`);
      },
    },
  });
  const { state } = await failed("workflow: [{ step: a, tool: { kind: http, url: x, auth: crm } }]");
  assert.match(state.error?.message ?? "", /refused \[secret\]/);
});
