import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { secretBench } from "../../support/service/secret-source.ts";
import { setup } from "../support/bench.ts";

// Scopes of entries over the executions of a tree (interface specification, Scopes and cache keys).

async function bench(t: TestContext, scope: string) {
  let count = 0;
  const { server, source } = await secretBench(t, () => [200, { access_token: `t-${++count}` }]);
  const keychain = `keychain: [{ name: api, kind: oauth2, scope: ${scope}, endpoint: "${server.origin}/token" }]`;
  const read = 'tool: { kind: http, url: "{{ keychain.api.access_token }}" }';
  const child = (name: string) => `metadata: { name: ${name} }\n${keychain}\nworkflow: [{ step: read, ${read} }]`;
  const files = { "one.yaml": child("one"), "two.yaml": child("two") };
  const made = setup(t, { secretSource: source, files });
  const parent = `
${keychain}
workflow:
  - { step: before, tool: { kind: playbook, path: one }, next: own }
  - { step: own, ${read}, next: after }
  - { step: after, tool: { kind: playbook, path: two }, next: last }
  - { step: last, ${read} }
`;
  return { ...made, parent, urls: () => made.calls.map(({ config }) => config["url"]) };
}

test("a shared entry is the whole tree's, whichever of its playbooks resolved it, and ends with it", async (t) => {
  const { completed, parent, urls } = await bench(t, "shared");
  await completed(parent);
  assert.deepEqual(urls(), ["t-1", "t-1", "t-1", "t-1"]);
  await completed(parent);
  assert.deepEqual(urls().slice(4), ["t-2", "t-2", "t-2", "t-2"]);
});

test("a local entry is its execution's alone", async (t) => {
  const { completed, parent, urls } = await bench(t, "local");
  await completed(parent);
  assert.deepEqual(urls(), ["t-1", "t-2", "t-3", "t-2"]);
});

test("a global entry is its playbook's, in this run and in later ones", async (t) => {
  const { completed, parent, urls } = await bench(t, "global");
  await completed(parent);
  await completed(parent);
  assert.deepEqual(urls(), ["t-1", "t-2", "t-3", "t-2", "t-1", "t-2", "t-3", "t-2"]);
});

test("a value is passed to a child through its args, and the child uses it", async (t) => {
  const { source, server } = await secretBench(t, () => [200, { access_token: "secret-of-parent" }]);
  const { completed, calls, executions } = setup(t, {
    secretSource: source,
    files: {
      "child.yaml": 'metadata: { name: child }\nworkflow: [{ step: a, tool: { kind: http, url: "{{ token }}" } }]',
    },
  });
  await completed(`
keychain: [{ name: api, kind: oauth2, endpoint: "${server.origin}/token" }]
workflow: [{ step: call, tool: { kind: playbook, path: child, args: { token: "{{ keychain.api.access_token }}" } } }]
`);
  assert.equal(calls[0]?.config["url"], "secret-of-parent");
  assert.equal(executions().length, 2);
});

test("an entry that the playbook does not define is found where others have set it, the nearest first", async (t) => {
  const { completed, calls, keychain, failed } = setup(t);
  const text = 'workflow: [{ step: a, tool: { kind: http, url: "{{ keychain.given.token }}" } }]';
  const { state } = await failed(text);
  assert.match(state.error?.message ?? "", /^KEYCHAIN: Entry 'given' not found$/);
  const key = { catalogId: "test", name: "given", scope: "global", executionId: "", rootExecutionId: "" } as const;
  const entry = { data: { token: "g" }, credentialType: "bearer", cacheType: "secret", autoRenew: false } as const;
  await keychain.set(key, entry);
  await completed(text);
  assert.equal(calls[0]?.config["url"], "g");
});
