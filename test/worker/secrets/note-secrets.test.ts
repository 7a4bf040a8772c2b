import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createSecrets } from "../../../src/engine/sealing/secrets.ts";
import { failed } from "../../../src/schema/words/outcome.ts";
import { noteCredential } from "../../../src/worker/secrets/note-secrets.ts";
import { setup } from "../support/bench.ts";
import { ok } from "../support/scripted-tools.ts";

// What a task tells about itself, errors and log lines, never has a secret in it; what it gives to the next task does.

const CANARY = "canary/51c0 ffee";
const CREDENTIALS = { api: { type: "bearer", data: { token: CANARY, host: "db.internal" } } };

/** Fails with everything it was given in its message, as a shell or an HTTP client might. */
function blabs(said: unknown) {
  return failed(
    "client_error",
    "EXIT_1",
    `cannot run ${JSON.stringify(said)} at https://h/?t=${encodeURIComponent(CANARY)}`,
    {
      details: { stderr: [`denied for ${CANARY}`] },
    },
  );
}

test("an error that quotes a keychain value is reported with [secret] in its place", async (t) => {
  const tools = { a: [ok({})], b: (call: { config: unknown }) => blabs(call.config) };
  const bench = setup(t, { credentials: CREDENTIALS, tools });
  const { state, events } = await bench.failed(`
keychain: [{ name: mine, kind: credential, credential: api }]
workflow:
  - { step: b, tool: { kind: shell, cmd: "curl {{ keychain.mine.token }}" } }
`);
  assert.ok(!JSON.stringify([state.error, events]).includes("51c0"), JSON.stringify(state.error));
  assert.match(state.error?.message ?? "", /curl \[secret\].*\?t=\[secret\]/);
  assert.deepEqual(state.error?.details, { stderr: ["denied for [secret]"] });
});

test("an error that quotes a credential hides its secrets and not its host", async (t) => {
  const tools = { a: (call: { auth: unknown }) => blabs(call.auth) };
  const { state } = await setup(t, { credentials: CREDENTIALS, tools }).failed(`
workflow: [{ step: a, tool: { kind: http, auth: api } }]
`);
  assert.ok(!(state.error?.message ?? "").includes("51c0"));
  assert.match(state.error?.message ?? "", /db\.internal/);
});

test("a value that passes to the next task stays what it is", async (t) => {
  const bench = setup(t, { credentials: CREDENTIALS, tools: { a: [ok({ token: CANARY })] } });
  const ran = await bench.completed(`
workflow:
  - step: a
    tool: { kind: http, auth: api }
    next: { arcs: [{ step: b }] }
  - { step: b, tool: { kind: noop, result: { token: "{{ a.token }}" } } }
`);
  assert.deepEqual(await ran.result(), { token: CANARY });
});

test("who, where and how long are no secrets of a credential; the password in an address is one, and every other field", () => {
  const secrets = createSecrets();
  noteCredential(
    {
      ...{ host: "db.internal", db_port: 5432, username: "joe-the-user", region: "eu-west-1", timeout_ms: 30_000 },
      ...{ max_connections: 5_000, token_url: "https://joe:swordfish@login.example/token", sslmode: "require" },
      ...{
        password: "hunter22",
        pin: 4711,
        nested: { list: ["in a list"] },
        document: '{"private_key":"of the document"}',
      },
    },
    secrets,
  );
  const open = "db.internal 5432 joe-the-user eu-west-1 30000 5000 https://joe:@login.example/token require";
  assert.equal(secrets.hide(open), open);
  const hidden = secrets.hide("hunter22, 4711, in a list, of the document, https://joe:swordfish@login.example/token");
  assert.equal(hidden, "[secret], [secret], [secret], [secret], https://joe:[secret]@login.example/token");
});

test("texts too short to be secrets are left, and the longer of two is hidden whole", () => {
  const secrets = createSecrets();
  secrets.note({ a: "on", b: ["hunter22"], c: "hunter22-and-more" });
  assert.equal(secrets.hide("on: hunter22-and-more, hunter22"), "on: [secret], [secret]");
});

/** Runs a task that fails by a rule with this message and code; `{{ mine }}` stands for the secret. */
async function failedByRule(t: TestContext, reason: { message: string; code: string }) {
  const bench = setup(t, { credentials: CREDENTIALS, tools: { a: [ok({})] } });
  const token = (text: string) => JSON.stringify(text.replace("{{ mine }}", "{{ keychain.mine.token }}"));
  return await bench.failed(`
keychain: [{ name: mine, kind: credential, credential: api }]
workflow:
  - step: a
    tool:
      kind: http
      spec:
        policy:
          rules: [{ else: { then: { do: fail, message: ${token(reason.message)}, code: ${token(reason.code)} } } }]
`);
}

for (const [what, limit] of [
  ["message", 4_000],
  ["code", 200],
] as const) {
  test(`a rule's ${what} hides a secret before it is cut at ${limit} characters, wherever the cut falls`, async (t) => {
    for (const end of [limit - 1, limit, limit + 1, limit + CANARY.length - 1, limit + CANARY.length]) {
      const filler = "x".repeat(end - CANARY.length);
      const reason = { message: "m", code: "C", [what]: `${filler}{{ mine }}` };
      const { state, events } = await failedByRule(t, reason);
      const expected = `${filler}[secret]`.slice(0, limit);
      assert.equal(state.error?.[what], expected, `the secret ends at character ${end}`);
      assert.ok(!JSON.stringify([state.error, events]).includes(CANARY.slice(0, 3)), `it ends at character ${end}`);
    }
  });
}
