import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { KeychainKey, KeychainWrite } from "../../../src/ports/keychain.ts";
import { createSecretSource } from "../../../src/roles/server/secret-source.ts";
import { failed as failedResult } from "../../../src/schema/words/outcome.ts";
import { type RecordedRequest, startHttpServer } from "../../support/servers/http-server.ts";
import { type Answer, formFields, secretBench } from "../../support/service/secret-source.ts";
import { setup } from "../support/bench.ts";
import { ok } from "../support/scripted-tools.ts";

// The state table of a keychain entry (interface specification, States), as a run's templates meet it.

/** A token endpoint that counts, and a bench whose entries are requested there. */
async function tokenBench(t: TestContext, handle?: (request: RecordedRequest, count: number) => Answer | undefined) {
  let count = 0;
  const { server, source } = await secretBench(t, (request) => {
    count += 1;
    return handle === undefined ? [200, { access_token: `t-${count}`, expires_in: 100 }] : handle(request, count);
  });
  const bench = setup(t, {
    secretSource: source,
    tools: {
      // Works for as long as it is told.
      async wait({ config }) {
        await bench.clock.sleep(Number(config["ms"]));
        return ok({});
      },
      leak({ config, log }) {
        log(`asking with ${String(config["url"])}`);
        return failedResult("client_error", "REFUSED", `Bearer ${String(config["url"])} was refused`);
      },
    },
  });
  return { ...bench, server };
}

const GLOBAL: KeychainKey = { catalogId: "test", name: "api", scope: "global", executionId: "", rootExecutionId: "" };
const LIVE: KeychainWrite = {
  data: { access_token: "kept" },
  credentialType: "oauth2",
  cacheType: "token",
  autoRenew: false,
};

/** Reads the token, works for `ms`, and reads it again. */
function twice(origin: string, entry: string, ms = 0): string {
  return `
keychain: [{ name: api, kind: oauth2, endpoint: "${origin}/token", data: { client_id: c }, ${entry} }]
workflow:
  - { step: first, tool: { kind: http, url: "{{ keychain.api.access_token }}" }, next: wait }
  - { step: wait, tool: { wait: { kind: shell, ms: ${ms} } }, next: second }
  - { step: second, tool: { kind: http, url: "{{ keychain.api.access_token }}" } }
`;
}

const urls = (calls: { kind: string; config: Record<string, unknown> }[]) =>
  calls.filter(({ kind }) => kind === "http").map(({ config }) => config["url"]);

test("an absent entry is requested once and kept for the steps and runs after", async (t) => {
  const { completed, calls, server, keychain, clock } = await tokenBench(t);
  const text = twice(server.origin, "scope: global");
  await completed(text);
  await completed(text);
  assert.deepEqual(urls(calls), ["t-1", "t-1", "t-1", "t-1"]);
  assert.equal(server.requests.length, 1);
  assert.deepEqual(formFields(server.requests[0]?.body ?? ""), { client_id: "c" });
  const found = await keychain.get(GLOBAL);
  assert.ok(found.status === "success");
  assert.ok(found.expiresAt - clock.now() <= 100_000, "as long as the answer says");
});

test("ttl_seconds wins over the lifetime of the answer", async (t) => {
  const { completed, server, keychain, clock } = await tokenBench(t);
  await completed(twice(server.origin, "ttl_seconds: 900"));
  const found = await keychain.get(GLOBAL);
  assert.ok(found.status === "success" && found.expiresAt - clock.now() > 100_000);
});

test("a live entry that others have set is used", async (t) => {
  const { completed, calls, server, keychain } = await tokenBench(t);
  await keychain.set(GLOBAL, LIVE);
  await completed(twice(server.origin, "scope: global"));
  assert.deepEqual(urls(calls), ["kept", "kept"]);
  assert.equal(server.requests.length, 0);
});

test("an entry that expired before the execution began is resolved afresh", async (t) => {
  const { completed, calls, server, keychain, clock } = await tokenBench(t);
  await keychain.set(GLOBAL, { ...LIVE, ttlSeconds: 10 });
  await clock.advance(11_000);
  await completed(twice(server.origin, "scope: global"));
  assert.deepEqual(urls(calls), ["t-1", "t-1"]);
});

test("an entry that expires during the run and does not renew fails the step that reads it then", async (t) => {
  const { failed, calls, server } = await tokenBench(t);
  const { state } = await failed(twice(server.origin, "auto_renew: false", 101_000));
  assert.match(state.error?.message ?? "", /^KEYCHAIN: Entry 'api' expired/);
  assert.deepEqual([state.error?.kind, state.error?.code, state.error?.step], ["template", "KEYCHAIN", "second"]);
  assert.deepEqual(urls(calls), ["t-1"]);
  assert.equal(server.requests.length, 1);
});

test("an entry that expires during the run and renews is renewed by its own request", async (t) => {
  const { completed, calls, server } = await tokenBench(t);
  await completed(twice(server.origin, "auto_renew: true", 101_000));
  assert.deepEqual(urls(calls), ["t-1", "t-2"]);
  assert.equal(server.requests[1]?.body, "client_id=c");
});

test("an entry is renewed within one command too: a loop that lasts longer than its token", async (t) => {
  const { completed, calls, server } = await tokenBench(t);
  await completed(`
keychain: [{ name: api, kind: oauth2, endpoint: "${server.origin}/token", auto_renew: true }]
workflow:
  - step: a
    loop: { in: [1, 2, 3], iterator: n, spec: { mode: sequential, policy: { exec: local } } }
    tool:
      - read: { kind: http, url: "{{ keychain.api.access_token }}" }
      - wait: { kind: shell, ms: 60000 }
`);
  assert.deepEqual(urls(calls), ["t-1", "t-1", "t-2"]);
});

test("renew_config says how it is renewed: endpoint, method, headers, data and the names of the fields", async (t) => {
  const { completed, calls, server, keychain, clock } = await tokenBench(t, ({ url }) =>
    url === "/renew" ? [200, { jwt: "renewed", seconds: 50 }] : [200, { access_token: "first", expires_in: 10 }],
  );
  const renewal = `{ endpoint: "${server.origin}/renew", method: PUT, headers: { X-Key: k, Content-Type: application/json }, data: { refresh: r }, token_field: jwt, ttl_field: seconds }`;
  await completed(twice(server.origin, `auto_renew: true, renew_config: ${renewal}`, 11_000));
  assert.deepEqual(urls(calls), ["first", "renewed"]);
  const [, renewed] = server.requests;
  assert.deepEqual([renewed?.method, renewed?.body, renewed?.headers["x-key"]], ["PUT", '{"refresh":"r"}', "k"]);
  const found = await keychain.get(GLOBAL);
  assert.ok(found.status === "success" && found.expiresAt - clock.now() <= 50_000, "the answer's lifetime");
});

test("a renewal without a lifetime keeps the entry for an hour", async (t) => {
  const { completed, server, keychain, clock } = await tokenBench(t, () => [200, { access_token: "t" }]);
  await completed(twice(server.origin, "auto_renew: true, ttl_seconds: 5", 6_000));
  const found = await keychain.get(GLOBAL);
  assert.ok(found.status === "success" && found.expiresAt - clock.now() > 3_590_000);
});

test("the renewal that stands with an entry is used where it is of another endpoint", async (t) => {
  const { completed, calls, server, keychain, clock } = await tokenBench(t);
  const renewConfig = { endpoint: `${server.origin}/other`, data: { by: "others" } };
  await keychain.set(GLOBAL, { ...LIVE, autoRenew: true, renewConfig, ttlSeconds: 1 });
  await clock.advance(2_000);
  await completed(twice(server.origin, "auto_renew: true"));
  assert.deepEqual([server.requests[0]?.url, server.requests[0]?.body], ["/other", "by=others"]);
  assert.deepEqual(urls(calls), ["t-1", "t-1"]);
});

for (const [what, answer, why] of [
  ["answered 500", [500, { error: "down" }], /answered 500: down/],
  ["answered 201", [201, { access_token: "t", expires_in: 9 }], /answered 201/],
  ["answered without a token", [200, { expires_in: 9 }], /without a field 'access_token'/],
  ["cut off", undefined, /got no answer/],
] as const) {
  test(`a renewal that is ${what} is logged, fails the step, leaves the entry expired, and is not tried again`, async (t) => {
    const { failed, server, lines, keychain } = await tokenBench(t, (_, count) =>
      count === 1 ? [200, { access_token: "first", expires_in: 100 }] : (answer as Answer | undefined),
    );
    const ran = await failed(twice(server.origin, "auto_renew: true", 101_000));
    const { error } = ran.state;
    assert.match(error?.message ?? "", /^KEYCHAIN: Failed to renew 'api': /);
    assert.match(error?.message ?? "", why);
    assert.deepEqual(
      [error?.kind, error?.code, error?.step, error?.retryable],
      ["template", "KEYCHAIN", "second", false],
    );
    assert.equal(ran.of("call.error").length, 1);
    assert.deepEqual(
      lines.filter(({ task }) => task === "keychain").map(({ step, text }) => [step, text.split(":", 2).join(":")]),
      [["second", "KEYCHAIN: Failed to renew 'api'"]],
    );
    assert.equal((await keychain.get(GLOBAL)).status, "expired");
    assert.equal(server.requests.length, 2);
  });
}

test("a rule that retries later tries the renewal again, since that is the author's decision", async (t) => {
  const { completed, calls, server } = await tokenBench(t, (_, count) =>
    count === 2 ? [503, {}] : [200, { access_token: `t-${count}`, expires_in: 10 }],
  );
  await completed(`
keychain: [{ name: api, kind: oauth2, endpoint: "${server.origin}/token", auto_renew: true }]
workflow:
  - { step: first, tool: { kind: http, url: "{{ keychain.api.access_token }}" }, next: wait }
  - { step: wait, tool: { wait: { kind: shell, ms: 11000 } }, next: second }
  - step: second
    tool:
      kind: http
      url: "{{ keychain.api.access_token }}"
      spec: { policy: { rules: [{ when: "{{ output.status == 'error' }}", then: { do: retry, delay: 6 } }] } }
`);
  assert.deepEqual(urls(calls), ["t-1", "t-3"]);
  assert.equal(server.requests.length, 3);
});

test("an entry that cannot be requested is not found, with the reason, and two steps at once ask once", async (t) => {
  const { run, server } = await tokenBench(t, () => [401, { error: "invalid_client" }]);
  const { state, of } = await run(`
keychain: [{ name: api, kind: oauth2, endpoint: "${server.origin}/token" }]
workflow:
  - { step: start, next: [a, b] }
  - { step: a, tool: { kind: http, url: "{{ keychain.api.access_token }}" } }
  - { step: b, tool: { kind: http, url: "{{ keychain.api.access_token }}" } }
`);
  assert.equal(state.status, "FAILED");
  for (const { error } of of("call.error")) {
    assert.match(error.message, /^KEYCHAIN: Entry 'api' not found: POST http.*\/token answered 401: invalid_client/);
  }
  assert.equal(of("call.error").length, 2);
  assert.equal(server.requests.length, 1);
});

test("an entry that a schema refuses is an error that lists every failure, and is not kept", async (t) => {
  const { failed, server, keychain } = await tokenBench(t);
  const schema = "schema: { required: [refresh_token], types: { expires_in: string } }";
  const { state } = await failed(twice(server.origin, schema));
  assert.match(state.error?.message ?? "", /Entry 'api' not found: .*Missing required field: refresh_token/);
  assert.match(state.error?.message ?? "", /Field 'expires_in' must be string, got integer/);
  assert.equal((await keychain.get(GLOBAL)).status, "not_found");
});

test("only the entries that are needed are requested, those that they read first", async (t) => {
  const { completed, calls, server } = await tokenBench(t, ({ url, headers }) => [
    200,
    { access_token: `${url} after ${String(headers["authorization"])}` },
  ]);
  await completed(`
keychain:
  - { name: base, kind: oauth2, endpoint: "${server.origin}/base" }
  - { name: unused, kind: oauth2, endpoint: "${server.origin}/unused" }
  - { name: api, kind: http, method: POST, endpoint: "${server.origin}/api", headers: { Authorization: "{{ keychain.base.access_token }}" } }
workflow: [{ step: a, tool: { kind: http, url: "{{ keychain.api.access_token }}" } }]
`);
  assert.deepEqual(
    server.requests.map(({ url }) => url),
    ["/base", "/api"],
  );
  assert.deepEqual(urls(calls), ["/api after /base after undefined"]);
});

test("an entry is requested when a template reads it, not when its step begins", async (t) => {
  const { completed, server } = await tokenBench(t);
  await completed(`
keychain: [{ name: api, kind: oauth2, endpoint: "${server.origin}/token" }]
workflow:
  - step: a
    tool: { kind: noop, result: { a: "{{ keychain.api.access_token if false else 'unread' }}" } }
`);
  assert.equal(server.requests.length, 0);
});

test("a rule reads an entry as a task does", async (t) => {
  const { completed, server } = await tokenBench(t);
  const ran = await completed(`
keychain: [{ name: api, kind: oauth2, endpoint: "${server.origin}/token" }]
workflow:
  - step: a
    tool:
      - one: { kind: noop, spec: { policy: { rules: [{ when: "{{ keychain.api.access_token == 't-1' }}", then: { do: break } }] } } }
      - two: { kind: noop, result: { never: true } }
`);
  assert.deepEqual(await ran.step("a"), { status: "ok" });
});

test("secrets of an entry stand in no error and no line, and its token type is no secret", async (t) => {
  const answer: Answer = [200, { access_token: "canary-51d0", token_type: "Bearer" }];
  const { failed, lines, server } = await tokenBench(t, () => answer);
  const ran = await failed(`
keychain: [{ name: api, kind: oauth2, endpoint: "${server.origin}/token" }]
workflow: [{ step: a, tool: { leak: { kind: http, url: "{{ keychain.api.access_token }}" } } }]
`);
  assert.equal(ran.state.error?.message, "Bearer [secret] was refused");
  assert.deepEqual(
    lines.map(({ text }) => text),
    ["asking with [secret]"],
  );
  assert.doesNotMatch(JSON.stringify(ran.events), /canary-51d0/);
});

test("without a catalog id in the command, or anything that resolves, reading a field is a template error", async (t) => {
  const text =
    'keychain: [{ name: api, kind: oauth2, endpoint: "https://x" }]\nworkflow: [{ step: a, tool: { kind: http, url: "{{ keychain.api.access_token }}" } }]';
  const { failed } = setup(t);
  const { state } = await failed(text);
  assert.deepEqual([state.error?.kind, state.error?.code], ["template", "KEYCHAIN"]);
  assert.match(state.error?.message ?? "", /KEYCHAIN: Entry 'api' not found: nothing here resolves kind 'oauth2'/);
});

test("a run that is cancelled does not wait for an endpoint that does not answer", async (t) => {
  const stop = new AbortController();
  const server = await startHttpServer(() => stop.abort());
  const source = createSecretSource({ allowPrivate: "all", now: Date.now });
  t.after(async () => {
    await server.close();
    await source.close();
  });
  const { run } = setup(t, { secretSource: source });
  const startedAt = performance.now();
  const { state } = await run(twice(server.origin, "scope: local"), { signal: stop.signal });
  assert.equal(state.status, "CANCELLED");
  assert.ok(performance.now() - startedAt < 20_000, "much less than the time of a request");
});
