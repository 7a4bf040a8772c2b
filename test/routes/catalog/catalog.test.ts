import assert from "node:assert/strict";
import { test } from "node:test";
import { type Body, openApi, playbook, posted } from "../../support/service/api.ts";

const api = await openApi();

async function get(path: string): Promise<{ status: number; body: Body }> {
  const response = await api.open.request(path);
  return { status: response.status, body: (await response.json()) as Body };
}

async function register(content: string, more: Body = {}): Promise<{ status: number; body: Body }> {
  const response = await api.open.request("/api/catalog/register", posted({ content, ...more }));
  return { status: response.status, body: (await response.json()) as Body };
}

test("a registered playbook is answered with its id and version, and is read back as it was written", async () => {
  const content = playbook("reg/first");
  const { status, body } = await register(content);
  assert.equal(status, 200);
  const { catalog_id, ...rest } = body;
  assert.match(String(catalog_id), /^\d+$/);
  assert.deepEqual(rest, { status: "success", path: "reg/first", kind: "playbook", version: 1, warnings: [] });
  const read = await get("/api/catalog/resource/reg/first");
  assert.equal(read.status, 200);
  const { created_at, ...entry } = read.body;
  assert.match(String(created_at), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.deepEqual(entry, {
    path: "reg/first",
    kind: "playbook",
    version: 1,
    catalog_id,
    metadata: { name: "first", path: "reg/first" },
    payload: {
      apiVersion: "flow/v2",
      kind: "Playbook",
      metadata: { name: "first", path: "reg/first" },
      workload: { tag: "a" },
      workflow: [{ step: "start", tool: { kind: "noop" } }],
    },
    content,
  });
});

test("every registration of a path is a newer version, also of the same text, and older ones stay readable", async () => {
  for (const [index, tag] of ["a", "b", "b"].entries()) {
    assert.equal((await register(playbook("reg/versions", tag))).body["version"], index + 1);
  }
  assert.equal((await get("/api/catalog/resource/reg/versions")).body["version"], 3);
  assert.equal((await get("/api/catalog/resource/reg/versions?version=latest")).body["version"], 3);
  const first = await get("/api/catalog/resource/reg/versions?version=1");
  assert.equal(first.body["version"], 1);
  assert.equal(first.body["content"], playbook("reg/versions", "a"));
});

test("if_changed answers the version that is there when the text is the same, and makes one when it is not", async () => {
  const { body: first } = await register(playbook("reg/same"), { if_changed: true });
  assert.equal(first["unchanged"], undefined);
  const { body: second } = await register(playbook("reg/same"), { if_changed: true });
  assert.deepEqual(second, { ...first, unchanged: true });
  const { body: third } = await register(playbook("reg/same", "other"), { if_changed: true });
  assert.deepEqual([third["version"], third["unchanged"]], [2, undefined]);
});

test("registrations of one path at the same time get versions one after the other, none twice, none missing", async () => {
  const answers = await Promise.all(Array.from({ length: 12 }, (_, at) => register(playbook("reg/race", `t${at}`))));
  const versions = answers.map(({ body }) => Number(body["version"])).sort((left, right) => left - right);
  assert.deepEqual(
    versions,
    Array.from({ length: 12 }, (_, index) => index + 1),
  );
  assert.equal(new Set(answers.map(({ body }) => body["catalog_id"])).size, 12);
});

test("of the same text registered at the same time with if_changed, one makes the version and all answer it", async () => {
  const same = Array.from({ length: 8 }, () => register(playbook("reg/race-same"), { if_changed: true }));
  const answers = await Promise.all(same);
  assert.deepEqual(new Set(answers.map(({ body }) => body["version"])), new Set([1]));
  assert.equal(answers.filter(({ body }) => body["unchanged"] === undefined).length, 1);
});

test("the document says what it is: playbook, agent or MCP resource", async () => {
  const agent = playbook("kinds/agent", "a", ", agent: true");
  assert.equal((await register(agent)).body["kind"], "agent");
  assert.equal((await register(agent, { resource_type: "agent" })).status, 200);
  const asAgent = playbook("kinds/agent2").replace("kind: Playbook", "kind: Agent");
  assert.equal((await register(asAgent)).body["kind"], "agent");
  const mcp =
    "apiVersion: flow/v2\nkind: Mcp\nmetadata: {name: k8s, path: mcp/k8s}\nspec:\n  endpoint: https://h/mcp\n" +
    "  transport: sse\n  lifecycle: {deploy: ops/deploy}\n";
  const registered = await register(mcp, { resource_type: "Mcp" });
  assert.deepEqual([registered.body["kind"], registered.body["path"]], ["mcp", "mcp/k8s"]);
  const listed = await get("/api/catalog?resource_type=mcp");
  assert.deepEqual(
    (listed.body["resources"] as Body[]).map(({ path }) => path),
    ["mcp/k8s"],
  );
});

test("a document that is not what the caller takes it for is refused, and nothing is written", async () => {
  const { status, body } = await register(playbook("kinds/plain"), { resource_type: "agent" });
  assert.equal(status, 422);
  assert.equal(body["code"], "INVALID_INPUT");
  assert.match(String(body["error"]), /resource_type is 'agent', but the document is of kind 'playbook'/);
  assert.equal((await get("/api/catalog/resource/kinds/plain")).status, 404);
});

test("an invalid document is refused with every problem and its place, and nothing is written", async () => {
  const content =
    "apiVersion: v1\nkind: Playbook\nmetadata: { name: bad, path: bad/doc }\nworkflow:\n  - step: a\n    colour: red\n" +
    "    tool: { kind: noop }\n    next: { arcs: [{ step: nowhere }] }\n";
  const { status, body } = await register(content);
  assert.equal(status, 422);
  assert.equal(body["code"], "INVALID_PLAYBOOK");
  assert.match(String(body["request_id"]), /^\d+$/);
  const detail = body["detail"] as { message: string; errors: Body[]; warnings: Body[] };
  assert.deepEqual(
    detail.errors.map(({ line, column, path, code }) => [line, column, path, code]),
    [
      [1, 13, "apiVersion", "wrong-api-version"],
      [8, 28, "workflow[0].next.arcs[0].step", "unknown-step"],
    ],
  );
  assert.deepEqual(Object.keys(detail.errors[0] ?? {}).sort(), ["code", "column", "hint", "line", "message", "path"]);
  assert.deepEqual(
    detail.warnings.map(({ code }) => code),
    ["unknown-key"],
  );
  assert.equal((await get("/api/catalog/resource/bad/doc")).status, 404);
});

test("a document with warnings is registered, and the answer lists them", async () => {
  const { status, body } = await register(playbook("reg/warned").replace("workload:", "colour: red\nworkload:"));
  assert.equal(status, 200);
  assert.deepEqual(
    (body["warnings"] as Body[]).map(({ code, line }) => [code, line]),
    [["unknown-key", 4]],
  );
});

test("with strict a warning keeps a document out, and nothing is written", async () => {
  const warned = playbook("reg/strict").replace("workload:", "colour: red\nworkload:");
  const { status, body } = await register(warned, { strict: true });
  assert.equal(status, 422);
  assert.deepEqual(
    ((body["detail"] as Body)["errors"] as Body[]).map(({ code }) => code),
    ["unknown-key"],
  );
  assert.equal((await get("/api/catalog/resource/reg/strict")).status, 404);
  assert.equal((await register(playbook("reg/strict"), { strict: true })).status, 200);
});

test("a call of a missing playbook is a warning, also with strict: it may be registered later", async () => {
  const calling = (path: string) =>
    playbook("reg/calls").replace(
      /workflow:[\s\S]*/,
      `workflow: [{ step: a, tool: { kind: playbook, path: ${path} } }]\n`,
    );
  for (const [path, message] of [
    ["reg/nowhere", /`reg\/nowhere`, which step `a` calls, is not in the catalog/],
    ["reg//nowhere", /cannot be a path of the catalog: a part between its slashes is empty/],
  ] as const) {
    const { status, body } = await register(calling(path), { strict: true });
    const [warning] = body["warnings"] as Body[];
    assert.deepEqual([status, warning?.["code"]], [200, "unknown-playbook"]);
    assert.match(String(warning?.["message"]), message);
  }
  assert.equal((await register(playbook("reg/there"))).status, 200);
  for (const path of ["reg/there", "/reg/there", "reg/calls", '"{{ x }}"']) {
    assert.deepEqual((await register(calling(path))).body["warnings"], [], path);
  }
});

test("an unknown path and an unknown version are 404 and say which of both it is", async () => {
  await register(playbook("found/one"));
  const path = await get("/api/catalog/resource/found/none");
  assert.deepEqual([path.status, path.body["code"]], [404, "NOT_FOUND"]);
  assert.match(String(path.body["error"]), /There is no catalog entry 'found\/none'/);
  const version = await get("/api/catalog/resource/found/one?version=9");
  assert.equal(version.status, 404);
  assert.match(String(version.body["error"]), /has no version 9; its newest is 1/);
  assert.equal((await get("/api/catalog/versions/found/none")).status, 404);
  assert.equal((await get("/api/catalog/resource/found%00one")).status, 404);
  assert.equal((await get("/api/catalog/versions/found%00one")).status, 404);
});

test("paths are found with their slashes as they are or encoded, with spaces, per cents and letters of all kinds", async () => {
  for (const path of ["odd/ü ñ/100%/a?b#c", "odd/日本/x.y-z_1", "odd/%2F"]) {
    assert.equal((await register(playbook(path))).body["path"], path);
    const encoded = path.split("/").map(encodeURIComponent);
    for (const address of [encoded.join("/"), encoded.join("%2F")]) {
      assert.equal((await get(`/api/catalog/resource/${address}`)).body["path"], path, address);
    }
  }
});

for (const path of ["", "/", "a/", "a//b", "a/./b", "a/../b", "..", "a\\\\b", "a\\u0007b", "x".repeat(513)]) {
  test(`no document gets the catalog path ${JSON.stringify(path.slice(0, 20))}, which no address could name`, async () => {
    const content = playbook("x").replace('path: "x"', `path: "${path}"`);
    const { status, body } = await register(content);
    assert.equal(status, 422);
    const { errors } = body["detail"] as { errors: Body[] };
    assert.deepEqual(
      errors.map(({ code, path: at }) => [code, at]),
      [["wrong-value", "metadata.path"]],
    );
  });
}

test("the list has the newest version of each path in order, and its pages join without gap or repeat", async () => {
  for (const name of ["c", "a", "e", "b", "d"]) await register(playbook(`pages/${name}`));
  await register(playbook("pages/b", "newer"));
  await register(playbook("pages0"));
  const seen: unknown[] = [];
  let cursor: unknown = "";
  let pages = 0;
  for (; cursor !== null; pages += 1) {
    const from = cursor === "" ? "" : `&cursor=${String(cursor)}`;
    const { body } = await get(`/api/catalog?prefix=pages/&limit=2${from}`);
    const resources = body["resources"] as Body[];
    assert.ok(resources.length <= 2);
    for (const { path, version } of resources) seen.push([path, version]);
    cursor = body["next_cursor"];
  }
  assert.equal(pages, 3);
  assert.deepEqual(seen, [
    ["pages/a", 1],
    ["pages/b", 2],
    ["pages/c", 1],
    ["pages/d", 1],
    ["pages/e", 1],
  ]);
});

test("the list is narrowed to what calls a path: in any task, of the newest version, and not by the text alone", async () => {
  const calling = (path: string, task: string) =>
    register(
      `apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: n, path: ${path} }\nworkflow:\n  - { step: a, tool: ${task} }\n`,
    );
  await register(playbook("callee/part"));
  await calling("callers/direct", "{ kind: playbook, path: callee/part }");
  await calling("callers/within", "[{ one: { kind: noop } }, { two: { kind: playbook, path: callee/part } }]");
  await calling("callers/before", "{ kind: playbook, path: callee/part }");
  await calling("callers/before", "{ kind: noop }");
  await calling("callers/mention", '{ kind: noop, result: "callee/part" }');
  await calling("callers/longer", "{ kind: playbook, path: callee/part2 }");
  const pathsOf = async (query: string) => {
    const { status, body } = await get(`/api/catalog?${query}`);
    assert.equal(status, 200);
    return (body["resources"] as Body[]).map(({ path }) => path);
  };
  assert.deepEqual(await pathsOf("calls=callee/part"), ["callers/direct", "callers/within"]);
  assert.deepEqual(await pathsOf("calls=callee/part&prefix=callers/w"), ["callers/within"]);
  assert.deepEqual(await pathsOf(`calls=${encodeURIComponent('" || true || "')}`), []);
  assert.equal((await get("/api/catalog?calls=")).status, 422);
  assert.equal((await get("/api/catalog?calls=%00")).status, 422);
});

test("versions are listed newest first, by pages", async () => {
  for (const tag of ["a", "b", "c"]) await register(playbook("listed/versions", tag));
  const first = await get("/api/catalog/versions/listed/versions?limit=2");
  assert.deepEqual(
    (first.body["versions"] as Body[]).map(({ version }) => version),
    [3, 2],
  );
  const second = await get(`/api/catalog/versions/listed/versions?limit=2&cursor=${String(first.body["next_cursor"])}`);
  assert.deepEqual(
    (second.body["versions"] as Body[]).map(({ version }) => version),
    [1],
  );
  assert.equal(second.body["next_cursor"], null);
});

test("agents are listed with their document; an empty body and no body are the same", async () => {
  await register(playbook("agents/shown", "a", ", agent: true, terminal: {workspace: ops}"));
  for (const init of [posted({}), { method: "POST" }, posted({ limit: 500 })]) {
    const response = await api.open.request("/api/catalog/agents/list", init);
    assert.equal(response.status, 200);
    const { entries, next_cursor } = (await response.json()) as { entries: Body[]; next_cursor: unknown };
    assert.equal(next_cursor, null);
    const shown = entries.find(({ path }) => path === "agents/shown");
    assert.equal(shown?.["version"], 1);
    assert.match(String(shown["catalog_id"]), /^\d+$/);
    const { metadata } = shown["payload"] as { metadata: Body };
    assert.deepEqual(metadata["terminal"], { workspace: "ops", visible: true });
    assert.ok(!entries.some(({ path }) => path === "reg/first"));
  }
});

const CURSOR_OF_ANOTHER = Buffer.from("7").toString("base64url");
const CURSOR_WITH_NUL = Buffer.from('"a\\u0000"').toString("base64url");

for (const [what, path] of [
  ["a limit of 0", "/api/catalog?limit=0"],
  ["a limit above 500", "/api/catalog?limit=501"],
  ["a limit that is no number", "/api/catalog?limit=1e1"],
  ["an unknown resource type", "/api/catalog?resource_type=workflow"],
  ["a prefix with U+0000", "/api/catalog?prefix=a%00"],
  ["a cursor of nobody's", "/api/catalog?cursor=zzz"],
  ["a cursor of another list", `/api/catalog?cursor=${CURSOR_OF_ANOTHER}`],
  ["a cursor with U+0000", `/api/catalog?cursor=${CURSOR_WITH_NUL}`],
  ["a cursor of no version", "/api/catalog/versions/reg/first?cursor=zzz"],
  ["a version of 0", "/api/catalog/resource/reg/first?version=0"],
  ["a version that is no number", "/api/catalog/resource/reg/first?version=one"],
  ["a version beyond all bounds", "/api/catalog/resource/reg/first?version=99999999999"],
] as const) {
  test(`${what} is 422`, async () => {
    const { status, body } = await get(path);
    assert.deepEqual([status, body["code"]], [422, "INVALID_INPUT"]);
  });
}

for (const [what, body, said] of [
  ["no body", "", /The body is empty/],
  ["a body that is no JSON", "{content", /The body is not JSON/],
  ["a list", "[]", /The body is not valid/],
  ["no content", "{}", /content: is required/],
  ["content that is no text", '{"content": 1}', /content: must be string, got 1/],
  ["an unknown resource type", '{"content": "x", "resource_type": "job"}', /resource_type: /],
  ["if_changed that is no flag", '{"content": "x", "if_changed": "yes"}', /if_changed: must be boolean/],
  ["half of a surrogate pair", '{"content": "kind: \\ud800"}', /The document was not registered/],
  ["an empty document", '{"content": ""}', /The document was not registered: it has 1 error/],
] as const) {
  test(`registering with ${what} is 422`, async () => {
    const init = { method: "POST", body, headers: { "content-type": "application/json" } };
    const response = await api.open.request("/api/catalog/register", init);
    assert.equal(response.status, 422);
    assert.match(((await response.json()) as { error: string }).error, said);
  });
}

test("a body that is not UTF-8 is 422", async () => {
  const init = { method: "POST", body: new Uint8Array([0x7b, 0xff, 0x7d]) };
  assert.equal((await api.open.request("/api/catalog/register", init)).status, 422);
});

test("a body is read as JSON whatever its content type says", async () => {
  const init = { method: "POST", body: JSON.stringify({ content: playbook("reg/plain") }) };
  assert.equal((await api.open.request("/api/catalog/register", init)).status, 200);
});

test("metrics count requests by the route that is declared, and registrations by kind", async () => {
  await get("/api/catalog/resource/any/path");
  const text = await (await api.open.request("/metrics")).text();
  assert.match(text, /flow_http_request_duration_seconds_count\{method="GET",route="GET \/api\/catalog\/resource/);
  assert.doesNotMatch(text, /any\/path/);
  assert.match(text, /flow_catalog_registrations_total\{kind="agent",outcome="created"\} \d/);
});

test("a text is validated as registering it would, and nothing is written", async () => {
  const validate = async (content: unknown) => {
    const response = await api.open.request("/api/catalog/validate", posted({ content }));
    return { status: response.status, body: (await response.json()) as Body };
  };
  const good = await validate(playbook("val/one"));
  assert.deepEqual(good, { status: 200, body: { valid: true, kind: "playbook", path: "val/one", messages: [] } });
  const warned = await validate(playbook("val/two").replace("workload:", "nonsense: 1\nworkload:"));
  const [warning] = warned.body["messages"] as Body[];
  assert.deepEqual([warned.body["valid"], warning?.["severity"], warning?.["code"]], [true, "warning", "unknown-key"]);
  const refused = await register("kind: Playbook\nworkflow: []\n");
  const bad = await validate("kind: Playbook\nworkflow: []\n");
  assert.deepEqual([bad.status, bad.body["valid"], bad.body["kind"], bad.body["path"]], [200, false, null, null]);
  const errors = (bad.body["messages"] as Body[]).filter(({ severity }) => severity === "error");
  assert.deepEqual(
    errors.map(({ severity: _severity, ...problem }) => problem),
    (refused.body["detail"] as Body)["errors"],
  );
  for (const text of ["", "\u0000", "- a", "a: [", "{{", `a: ${"[".repeat(5_000)}`]) {
    const { status, body } = await validate(text);
    assert.deepEqual([status, body["valid"]], [200, false], text.slice(0, 20));
  }
  assert.equal((await validate(7)).status, 422);
  assert.equal((await get("/api/catalog/resource/val/one")).status, 404);
});

/** A chain of steps; 2,000 of them are 0.2 MB. */
const chain = (path: string, count: number) =>
  `apiVersion: flow/v2\nkind: Playbook\nmetadata: {name: chain, path: ${path}}\nworkload: {x: 1}\nworkflow:\n${Array.from(
    { length: count },
    (_, index) =>
      `- step: s${index}\n  tool: {kind: noop, value: "{{ workload.x | default(${index}) }}"}\n${
        index + 1 < count ? `  next: {arcs: [{step: s${index + 1}, when: "{{ true }}"}]}\n` : ""
      }`,
  ).join("")}`;

test("health is answered while documents of 2,000 steps are registered and validated", async () => {
  const content = chain("reg/chain", 2_000);
  const ended: string[] = [];
  const registering = register(content).then((answer) => {
    ended.push("register");
    return answer;
  });
  const validating = api.open.request("/api/catalog/validate", posted({ content }));
  assert.equal((await get("/api/health")).status, 200);
  assert.deepEqual(ended, []);
  const { status, body } = await registering;
  assert.deepEqual([status, body["path"]], [200, "reg/chain"]);
  assert.equal(((await (await validating).json()) as Body)["valid"], true);
  const { payload } = (await get("/api/catalog/resource/reg/chain")).body as { payload: { workflow: unknown[] } };
  assert.equal(payload.workflow.length, 2_000);
});

test("a large document is refused, warned of, and checked for what it calls as a small one is", async () => {
  const large = (content: string) => `${content}${"# large\n".repeat(3_000)}`;
  for (const content of [
    playbook("reg/alike").replace("kind: noop", "kind: playbook, path: reg/missing"),
    playbook("reg/alike").replace("workload:", "nonsense: 1\nworkload:"),
    "kind: Playbook\nworkflow: []\n",
    "a: 1\na: 2\n",
  ]) {
    const small = await register(content);
    const { status, body } = await register(large(content));
    const same = ({ catalog_id: _id, version: _version, request_id: _request, ...rest }: Body) => rest;
    assert.deepEqual([status, same(body)], [small.status, same(small.body)]);
  }
});
