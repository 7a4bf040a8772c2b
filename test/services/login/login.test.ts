import assert from "node:assert/strict";
import { test } from "node:test";
import type { CallbackBody, LoginInput } from "../../../src/schema/api/gateway.ts";
import { FlowError } from "../../../src/schema/words/errors.ts";
import { createCallbacks } from "../../../src/services/login/callbacks.ts";
import { createLogin, type LoginDeps } from "../../../src/services/login/login.ts";
import { createLoginLimit } from "../../../src/services/login/rate-limit.ts";

const IDENTITY = {
  domain: "idp.example",
  issuer: "https://idp.example",
  subject: "u-1",
  email: "ada@example.com",
  displayName: "Ada",
};
const USER = { user_id: 1, email: "ada@example.com", display_name: "Ada", roles: ["viewer"] };
const ASKED = {
  idpToken: "head.id-token.signature",
  idpDomain: "idp.example",
  address: "192.0.2.1",
  userAgent: "test",
};

/** A login whose playbook does `play`, and what it was started with. `time` ends waits, by their milliseconds. */
function setup(
  play: (input: LoginInput, take: (body: Partial<CallbackBody>) => Promise<void>) => unknown,
  deps: Partial<LoginDeps> = {},
) {
  const callbacks = createCallbacks();
  const started: { input: LoginInput; key: string }[] = [];
  const times = new Map<number, () => void>();
  const missed: string[] = [];
  const refused: string[] = [];
  const login = createLogin({
    isDomain: (domain) => domain === "idp.example",
    limit: createLoginLimit(1_000, () => 0),
    exchange: () => Promise.reject(new FlowError("INTERNAL", "no code in this test")),
    verify: () => Promise.resolve(IDENTITY),
    callbacks,
    start(input, key) {
      started.push({ input, key });
      const take = (body: Partial<CallbackBody>) =>
        callbacks.take({ request_id: input.request_id, execution_id: "7", ...body });
      void play(input, take);
      return Promise.resolve("7");
    },
    ended: () => new Promise(() => undefined),
    sessionOf: () => Promise.resolve({ user: USER, expiresAt: 5 }),
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        times.set(ms, resolve);
        signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
      }),
    onCallbackMissed: (executionId) => missed.push(executionId),
    onRefused: ({ code, address }) => refused.push(`${code} from ${address}`),
    callbackUrl: "http://127.0.0.1:8091",
    loginMs: 15_000,
    sessionMs: 3_600_000,
    sessionIdleMs: 60_000,
    ...deps,
  });
  return { login, started, times, missed, refused };
}

const succeed = (_: LoginInput, take: (body: Partial<CallbackBody>) => Promise<void>) => take({ user: USER });

test("a login gives a token of which the playbook sees only the SHA-256, and the server's user", async () => {
  const { login, started } = setup(succeed);
  const { sessionToken, user, expiresAt } = await login(ASKED);
  assert.deepEqual([user, expiresAt], [USER, 5]);
  assert.match(sessionToken, /^[\w-]{43}$/);
  const { input, key } = started[0]!;
  const { request_id: requestId, token_sha256: sha256, ...rest } = input;
  assert.deepEqual(rest, {
    gateway_url: "http://127.0.0.1:8091",
    email: "ada@example.com",
    display_name: "Ada",
    issuer: "https://idp.example",
    subject: "u-1",
    idp_domain: "idp.example",
    session_seconds: 3_600,
    idle_seconds: 60,
    address: "192.0.2.1",
    user_agent: "test",
  });
  assert.match(requestId, /^[\w-]{43}$/);
  assert.match(sha256, /^[0-9a-f]{64}$/);
  assert.match(key, /^login-[0-9a-f]{64}$/);
  assert.doesNotMatch(JSON.stringify(started), new RegExp(`${sessionToken}|id-token`));
});

test("an ID token is recognised in every encoding of its signature; another token is not", async () => {
  const { login, started } = setup(succeed);
  for (const idpToken of ["head.claims.one", "head.claims.two", "head.other.one"]) await login({ ...ASKED, idpToken });
  const keys = started.map(({ key }) => key);
  assert.equal(keys[0], keys[1]);
  assert.notEqual(keys[0], keys[2]);
});

test("a login ignores the caller's existing session: each login creates a new token", async () => {
  const { login } = setup(succeed);
  const tokens = await Promise.all([login(ASKED), login(ASKED), login(ASKED)]);
  assert.equal(new Set(tokens.map(({ sessionToken }) => sessionToken)).size, 3);
});

test("a callback whose user has no address is 'Invalid email', word for word", async () => {
  for (const user of [undefined, null, {}, { email: "" }, { email: 7 }, "ada@example.com"]) {
    const told: unknown[] = [];
    const { login } = setup((_, take) => take({ user }).catch((error: unknown) => told.push(error)));
    await assert.rejects(login(ASKED), { code: "INVALID_LOGIN", message: "Invalid email" });
    assert.equal((told[0] as FlowError).message, "Invalid email");
  }
});

test("an inactive user gets the reason", async () => {
  const { login } = setup((_, take) => take({ error: "ada@example.com is not active", code: "FORBIDDEN" }));
  await assert.rejects(login(ASKED), { code: "FORBIDDEN", message: /not active/ });
});

test("a failed playbook is reported as soon as it has ended", async () => {
  let end = (_: string) => {};
  const ended = () => new Promise<string>((resolve) => (end = resolve));
  const { login, times } = setup(() => undefined, { ended, sessionOf: () => Promise.resolve(undefined) });
  const logging = login(ASKED);
  await turn();
  times.get(500)?.();
  await turn();
  end("FAILED");
  await assert.rejects(logging, { code: "INVALID_LOGIN", message: /ended as FAILED \(execution 7\)/ });
});

test("a server that cannot be asked how the playbook does is asked again, and the callback counts all the same", async () => {
  let take: (body: Partial<CallbackBody>) => Promise<void> = () => Promise.resolve();
  let asked = 0;
  const ended = () => {
    asked += 1;
    return Promise.reject(new FlowError("SERVER_UNREACHABLE", "away"));
  };
  const { login, times } = setup((_, given) => (take = given), { ended });
  const logging = login(ASKED);
  for (const round of [1, 2]) {
    await turn();
    times.get(500)?.();
    await turn();
    assert.equal(asked, round);
  }
  await take({ user: USER });
  assert.equal((await logging).user.email, "ada@example.com");
});

for (const status of ["COMPLETED", "FAILED"]) {
  test(`a session that was made is a login although its callback was lost, and the run ${status}`, async () => {
    const { login, times, missed } = setup(() => undefined, { ended: () => Promise.resolve(status) });
    const logging = login(ASKED);
    await turn();
    times.get(500)?.();
    assert.equal((await logging).user.email, "ada@example.com");
    assert.deepEqual(missed, ["7"]);
  });
}

test("a playbook that takes too long is waited for no longer, and its callback is then unknown", async () => {
  let take: (body: Partial<CallbackBody>) => Promise<void> = () => Promise.resolve();
  const { login, times } = setup((_, given) => (take = given));
  const logging = login(ASKED);
  await turn();
  times.get(15_000)?.();
  await assert.rejects(logging, { code: "TIMEOUT", message: /longer than 15 s/ });
  await assert.rejects(take({ user: USER }), { code: "NOT_FOUND" });
});

test("a forged callback gives no session: the server has no such session, or one of another user", async () => {
  const forged = { sessionOf: () => Promise.resolve(undefined) };
  await assert.rejects(setup(succeed, forged).login(ASKED), { code: "INVALID_LOGIN", message: /no session/ });
  const other = { sessionOf: () => Promise.resolve({ user: { ...USER, email: "ben@example.com" }, expiresAt: 5 }) };
  await assert.rejects(setup(succeed, other).login(ASKED), { code: "INVALID_LOGIN" });
});

test("an ID token that was used for a login is refused", async () => {
  const start = () => Promise.reject(new FlowError("CONFLICT", "The key was used"));
  const { login, refused } = setup(succeed, { start });
  await assert.rejects(login(ASKED), { code: "UNAUTHENTICATED", message: /was used for a login before/ });
  assert.deepEqual(refused, ["UNAUTHENTICATED from 192.0.2.1"]);
});

test("an error of the server on starting the playbook is passed on", async () => {
  const start = () => Promise.reject(new FlowError("SERVER_UNREACHABLE", "away"));
  const { login, refused } = setup(succeed, { start });
  await assert.rejects(login(ASKED), { code: "SERVER_UNREACHABLE" });
  assert.deepEqual(refused, [], "what is broken is no refusal");
});

test("a token that is not believed starts nothing", async () => {
  const verify = () => Promise.reject(new FlowError("UNAUTHENTICATED", "The ID token was rejected"));
  const { login, started, refused } = setup(succeed, { verify });
  await assert.rejects(login(ASKED), { code: "UNAUTHENTICATED" });
  assert.deepEqual(started, []);
  assert.deepEqual(refused, ["UNAUTHENTICATED from 192.0.2.1"]);
});

test("logins of an address are limited before its token is checked; unknown domains share one limit", async () => {
  let verified = 0;
  const verify = () => {
    verified += 1;
    return Promise.reject(new FlowError("FORBIDDEN", "no such domain"));
  };
  const { login } = setup(succeed, { verify, limit: createLoginLimit(2, () => 0) });
  for (const idpDomain of ["a.example", "b.example"]) await assert.rejects(login({ ...ASKED, idpDomain }));
  await assert.rejects(login({ ...ASKED, idpDomain: "c.example" }), { code: "RATE_LIMITED" });
  assert.equal(verified, 2);
});

/** Until what is due has run. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

const CODE = { code: "c", codeVerifier: "v".repeat(43), redirectUri: "https://flow.example.com/login", nonce: "n-1" };
const ASKED_BY_CODE = { code: CODE, idpDomain: "idp.example", address: "192.0.2.1", userAgent: "test" };

test("a code logs in with the token that the provider gives for it, which must have the nonce", async () => {
  const seen: unknown[] = [];
  const { login, started } = setup(succeed, {
    exchange: (domain, code) => {
      seen.push([domain, code]);
      return Promise.resolve("head.exchanged.signature");
    },
    verify: (domain, token, nonce) => {
      seen.push([domain, token, nonce]);
      return Promise.resolve(IDENTITY);
    },
  });
  assert.deepEqual((await login(ASKED_BY_CODE)).user, USER);
  assert.deepEqual(seen, [
    ["idp.example", CODE],
    ["idp.example", "head.exchanged.signature", "n-1"],
  ]);
  assert.equal(started.length, 1);
});

test("too many logins are refused before the provider is asked for a token", async () => {
  let exchanged = 0;
  const { login } = setup(succeed, {
    limit: createLoginLimit(1, () => 0),
    exchange: () => {
      exchanged += 1;
      return Promise.resolve("head.exchanged.signature");
    },
  });
  await login(ASKED_BY_CODE);
  await assert.rejects(login(ASKED_BY_CODE), { code: "RATE_LIMITED" });
  assert.equal(exchanged, 1);
});
