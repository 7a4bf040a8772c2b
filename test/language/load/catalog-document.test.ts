import assert from "node:assert/strict";
import { test } from "node:test";
import { loadCatalogDocument } from "../../../src/language/load/catalog-document.ts";
import { loadPlaybook } from "../../../src/language/load/load.ts";
import { readMcpResource } from "../../../src/schema/words/mcp-resource.ts";
import { HEAD, summary } from "../load-support.ts";

const WORKFLOW = "workflow: [{ step: start, tool: { kind: noop } }]\n";
const MCP = `kind: Mcp
metadata: { name: k8s, path: mcp/k8s, description: Pods and nodes. }
spec:
  endpoint: https://mcp.example.com/mcp
  transport: streamable_http
  auth: k8s_token
  timeout_seconds: 30
  terminal: { visible: true }
  lifecycle: { deploy: ops/deploy_k8s, status: ops/status_k8s }
`;

function load(text: string) {
  return loadCatalogDocument(text, "test.yaml");
}

test("a playbook's path is its metadata.path, else its name; its payload is what was written", () => {
  const { document } = load(`${HEAD.replace("demo", "demo, path: area/demo")}${WORKFLOW}`);
  const { playbook, ...written } = document ?? {};
  assert.equal(playbook?.path, "area/demo");
  assert.deepEqual(written, {
    kind: "playbook",
    triggers: [],
    path: "area/demo",
    metadata: { name: "demo", path: "area/demo" },
    payload: {
      apiVersion: "flow/v2",
      kind: "Playbook",
      metadata: { name: "demo", path: "area/demo" },
      workflow: [{ step: "start", tool: { kind: "noop" } }],
    },
  });
  assert.equal(load(HEAD + WORKFLOW).document?.path, "demo");
});

for (const [head, kind] of [
  [HEAD, "playbook"],
  [HEAD.replace("demo", "demo, agent: true"), "agent"],
  [HEAD.replace("demo", "demo, agent: false"), "playbook"],
  [HEAD.replace("Playbook", "Agent"), "agent"],
  [HEAD.replace("Playbook", "Agent").replace("demo", "demo, agent: false"), "playbook"],
] as const) {
  test(`${head.split("\n").slice(1, 3).join(", ")} is a resource of kind ${kind}`, () => {
    assert.equal(load(head + WORKFLOW).document?.kind, kind);
  });
}

test("a playbook's diagnostics are those of the loader of playbooks", () => {
  const text = `${HEAD}workflow: [{ step: a, next: { arcs: [{ step: b }] } }]\n`;
  assert.deepEqual(load(text).diagnostics, loadPlaybook(text, "test.yaml").diagnostics);
  assert.equal(load(text).document, undefined);
});

test("an MCP resource with every key is valid, without a warning", () => {
  const { document, diagnostics } = load(MCP);
  assert.deepEqual(diagnostics, []);
  assert.deepEqual([document?.kind, document?.path], ["mcp", "mcp/k8s"]);
});

test("an MCP resource needs its name and its endpoint alone", () => {
  const { document } = load("kind: Mcp\nmetadata: { name: k8s }\nspec: { endpoint: '{{ workload.url }}' }\n");
  assert.equal(document?.path, "k8s");
});

test("an MCP resource may have its endpoint under its earlier name", () => {
  const { document, diagnostics } = load("kind: Mcp\nmetadata: { name: k8s }\nspec: { url: 'https://a/mcp' }\n");
  assert.deepEqual(summary(diagnostics), ["3:9 legacy-form"]);
  assert.equal(readMcpResource("k8s", document?.payload ?? {}).endpoint, "https://a/mcp");
});

test("a slash at the beginning of a path is dropped with a warning, for playbooks and resources", () => {
  for (const text of [
    HEAD.replace("demo", "demo, path: //area/topic") + WORKFLOW,
    MCP.replace(/path: [^ ,}]+/, "path: /area/topic"),
  ]) {
    const { document, diagnostics } = load(text);
    assert.deepEqual(
      diagnostics.map(({ code }) => code),
      ["legacy-form"],
    );
    assert.equal(document?.path, "area/topic");
  }
  assert.equal(loadPlaybook(HEAD.replace("demo", "demo, path: /a") + WORKFLOW, "f").playbook?.path, "a");
  assert.equal(load(HEAD.replace("demo", "demo, path: /") + WORKFLOW).document, undefined);
});

for (const [what, text, expected] of [
  ["without spec", "kind: Mcp\nmetadata: { name: a }\n", "1:1 missing-key"],
  ["without an endpoint", "kind: Mcp\nmetadata: { name: a }\nspec: { transport: sse }\n", "3:7 missing-key"],
  ["without a name", MCP.replace("name: k8s, ", ""), "2:11 missing-key"],
  ["with an empty name", MCP.replace("name: k8s", "name: ''"), "2:19 missing-key"],
  ["with another transport", MCP.replace("streamable_http", "stdio"), "5:14 wrong-value"],
  [
    "with an endpoint of another scheme",
    MCP.replace("https://mcp.example.com/mcp", "file:///etc/passwd"),
    "4:13 wrong-value",
  ],
  ["with an endpoint that is none", MCP.replace("https://mcp.example.com/mcp", "mcp.example.com"), "4:13 wrong-value"],
  ["with a time-out of 0", MCP.replace("seconds: 30", "seconds: 0"), "7:20 wrong-value"],
  ["with a lifecycle that is a list", MCP.replace(/\{ deploy.*\}/, "[deploy]"), "9:14 wrong-type"],
  ["with an action without a path", MCP.replace("ops/deploy_k8s", "7"), "9:24 wrong-type"],
  ["of another version", `apiVersion: v1\n${MCP}`, "1:13 wrong-api-version"],
  ["with an unknown key", MCP.replace("auth:", "auht:"), "6:3 unknown-key"],
] as const) {
  test(`an MCP resource ${what} is reported at its place`, () => {
    const { document, diagnostics } = load(text);
    assert.deepEqual(summary(diagnostics), [expected]);
    assert.equal(document === undefined, !expected.endsWith("unknown-key"));
  });
}

test("a document of another kind is reported as such, and not as a list of missing keys", () => {
  const { diagnostics } = load("apiVersion: v1\nkind: Mpc\nmetadata: { name: a }\n");
  assert.deepEqual(summary(diagnostics), ["2:7 wrong-value"]);
  assert.match(diagnostics[0]?.hint ?? "", /did you mean `Mcp`/);
});

for (const [text, code] of [
  [`${HEAD}workload: { a: "x\\0y" }\n${WORKFLOW}`, "wrong-value"],
  [`${HEAD}workload: { "a\\0": 1 }\n${WORKFLOW}`, "wrong-value"],
  [`${HEAD}workload: { l: [{ a: "\\uD800" }] }\n${WORKFLOW}`, "not-text"],
] as const) {
  test(`what a database cannot store is refused: ${JSON.stringify(text.split("\n")[3])}`, () => {
    const { document, diagnostics } = load(text);
    assert.equal(document, undefined);
    assert.deepEqual(
      diagnostics.map(({ line, code }) => [line, code]),
      [[4, code]],
    );
  });
}

test("half of a surrogate pair in the text is reported at its place", () => {
  const { diagnostics } = load(`${HEAD}# \ud800\n${WORKFLOW}`);
  assert.deepEqual(summary(diagnostics), ["4:3 not-utf8"]);
});

test("whole surrogate pairs and all other characters are fine", () => {
  assert.deepEqual(load(`${HEAD}workload: { a: "😀 \\U0001F600 \\x1f" }\n${WORKFLOW}`).diagnostics, []);
});

test("the path is checked where it comes from", () => {
  assert.deepEqual(summary(load(`${HEAD.replace("name: demo", "name: a//b")}${WORKFLOW}`).diagnostics), [
    "3:19 wrong-value",
  ]);
});
