import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import { listen } from "../../src/roles/http/listen.ts";
import { closedPort, startHttpServer } from "../support/servers/http-server.ts";
import { openApi, playbook } from "../support/service/api.ts";
import { folderWith } from "../support/service/cli-process.ts";
import { runFlow } from "./in-process.ts";

const api = await openApi();
const server = await listen(
  { fetch: (request) => api.open.fetch(request), malformed: () => new Response(null, { status: 400 }) },
  { host: "127.0.0.1", port: 0 },
);
after(() => server.close());

const BAD = "apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: bad }\nworkflow: []\n";

async function setup(t: TestContext, files: Record<string, string>, url = server.url) {
  const folder = await folderWith(t, files);
  const environment = { HOME: folder, XDG_CONFIG_HOME: join(folder, "settings"), FLOW_SERVER_URL: url };
  return { folder, run: (...args: string[]) => runFlow(folder, args, environment) };
}

test("a refused document's problems are listed with places and exit code 2, and the others are registered", async (t) => {
  const { run } = await setup(t, {
    "a.yaml": playbook("refused/a"),
    "b.yaml": BAD,
    "c.yaml": playbook("refused/c").replace("workload:", "colour: red\nworkload:"),
  });
  const { code, stdout, stderr } = await run("register", "a.yaml", "b.yaml", "c.yaml");
  assert.equal(code, 2);
  assert.equal(
    stdout,
    "a.yaml: playbook refused/a registered as version 1\nc.yaml: playbook refused/c registered as version 1\n",
  );
  assert.match(stderr, /^b\.yaml:4:11 {2}empty-workflow {2}/m);
  assert.match(stderr, /^c\.yaml:4:1 {2}unknown-key {2}warning: /m);
  assert.match(stderr, /^1 document of 3 refused$/m);
});

test("an unchanged document makes no version, unless --force asks for one", async (t) => {
  const { folder, run } = await setup(t, { "a.yaml": playbook("same/a") });
  const register = async (...more: string[]) => (await run("register", "a.yaml", ...more)).stdout;
  assert.equal(await register(), "a.yaml: playbook same/a registered as version 1\n");
  assert.equal(await register(), "a.yaml: playbook same/a unchanged, version 1\n");
  assert.equal(await register("--if-changed"), "a.yaml: playbook same/a unchanged, version 1\n");
  assert.equal(await register("--force"), "a.yaml: playbook same/a registered as version 2\n");
  await writeFile(join(folder, "a.yaml"), `${playbook("same/a")}# changed\n`);
  assert.equal(await register(), "a.yaml: playbook same/a registered as version 3\n");
});

test("--json prints one object with what was registered and what was refused", async (t) => {
  const { run } = await setup(t, { "a.yaml": playbook("json/a"), "b.yaml": BAD });
  const { code, stdout } = await run("register", "a.yaml", "b.yaml", "--json");
  assert.equal(code, 2);
  const { registered, refused } = JSON.parse(stdout) as Record<"registered" | "refused", Record<string, unknown>[]>;
  assert.deepEqual(
    registered.map(({ file, path, version }) => [file, path, version]),
    [["a.yaml", "json/a", 1]],
  );
  assert.deepEqual(
    refused.map(({ file, code: why }) => [file, why]),
    [["b.yaml", "INVALID_PLAYBOOK"]],
  );
  assert.ok("detail" in (refused[0] ?? {}));
});

test("a folder's playbooks and MCP resources are registered, its tests and other YAML are not", async (t) => {
  const { folder, run } = await setup(t, { "compose.yaml": "services: {}\n", "a.test.yaml": "playbook: a.yaml\n" });
  await mkdir(join(folder, "below"));
  await writeFile(join(folder, "below", "a.yaml"), playbook("folder/a"));
  await writeFile(
    join(folder, "below", "m.yml"),
    "kind: Mcp\nmetadata: {name: folder/m}\nspec: {endpoint: http://h}\n",
  );
  const { code, stdout } = await run("register", ".");
  assert.equal(code, 0);
  assert.deepEqual(stdout.match(/\w+ folder\/\w+/g), ["playbook folder/a", "mcp folder/m"]);
  assert.equal((await run("validate", ".")).code, 0);
});

test("a file that is not UTF-8 is refused, and nothing of it is sent", async (t) => {
  const { folder, run } = await setup(t, {});
  await writeFile(join(folder, "latin.yaml"), Buffer.from("kind: Playbook # \xe9\n", "latin1"));
  const { code, stderr } = await run("register", "latin.yaml");
  assert.equal(code, 2);
  assert.match(stderr, /latin\.yaml is not UTF-8/);
});

test("the catalog is listed beyond one page, by prefix and by kind, and as JSON", async (t) => {
  const { run } = await setup(t, {});
  for (let at = 0; at < 3; at += 1) {
    const content = playbook(`many/p${at}`, "a", at === 1 ? ", agent: true" : "");
    await api.open.request("/api/catalog/register", { method: "POST", body: JSON.stringify({ content }) });
  }
  await api.database.sql`
    insert into flow.catalog (catalog_id, path, version, kind, content, payload, metadata)
    select 9000000 + n, 'bulk/' || lpad(n::text, 4, '0'), 1, 'playbook', 'x', '{}', '{}' from generate_series(1, 1200) n`;
  await api.database.sql`
    insert into flow.resource (path, kind, version, catalog_id, content_sha256)
    select path, kind, version, catalog_id, 'x' from flow.catalog where path like 'bulk/%'`;
  const { stdout } = await run("catalog", "--prefix", "bulk/", "--json");
  const { resources } = JSON.parse(stdout) as { resources: { path: string }[] };
  assert.equal(new Set(resources.map(({ path }) => path)).size, 1_200);
  const agents = await run("catalog", "list", "--prefix", "many/", "--type", "agent");
  assert.match(agents.stdout, /^many\/p1 +agent +1 /m);
  assert.doesNotMatch(agents.stdout, /p0|p2/);
  assert.match(agents.stderr, /^1 path at /);
});

test("an entry of any version is printed as it was registered, and an unknown one is reported", async (t) => {
  const { run } = await setup(t, {
    "one.yaml": playbook("shown/ü b", "one"),
    "two.yaml": playbook("shown/ü b", "two"),
  });
  await run("register", "one.yaml", "two.yaml");
  assert.equal((await run("catalog", "get", "shown/ü b")).stdout, playbook("shown/ü b", "two"));
  assert.equal((await run("catalog", "get", "shown/ü b", "--version", "1")).stdout, playbook("shown/ü b", "one"));
  const json = await run("catalog", "get", "shown/ü b", "--json");
  assert.equal((JSON.parse(json.stdout) as { version: number }).version, 2);
  assert.match((await run("catalog", "versions", "shown/ü b")).stdout, /playbook +2 .*\n.*playbook +1 /);
  for (const args of [
    ["get", "shown/none"],
    ["versions", "shown/none"],
  ]) {
    const { code, stdout, stderr } = await run("catalog", ...args);
    assert.deepEqual([code, stdout], [2, ""]);
    assert.match(stderr, /There is no catalog entry 'shown\/none'/);
  }
  const version = await run("catalog", "get", "shown/ü b", "--version", "x");
  assert.equal(version.code, 2);
  assert.match(version.stderr, /version: must be a version number, or latest/);
});

test("an unreachable server is reported with its address, its origin and what to do", async (t) => {
  const { run } = await setup(t, { "a.yaml": playbook("a") }, `http://127.0.0.1:${await closedPort()}`);
  for (const args of [["register", "a.yaml"], ["catalog"]]) {
    const { code, stdout, stderr } = await run(...args);
    assert.deepEqual([code, stdout], [1, ""]);
    assert.match(
      stderr,
      /^flow: Cannot reach the server at http:\/\/127\.0\.0\.1:\d+ \(FLOW_SERVER_URL\): .*ECONNREFUSED/,
    );
    assert.match(stderr, /'flow serve' starts one here/);
    assert.doesNotMatch(stderr, /^\s+at /m);
  }
});

for (const [what, status, headers, text] of [
  ["a web page", 200, { "content-type": "text/html" }, "<html>"],
  ["another API", 200, {}, "{}"],
  ["another API's error", 404, {}, '{"detail": "Not Found"}'],
  ["a redirect, which the token must not follow", 302, { location: "http://127.0.0.1:1/" }, ""],
] as const) {
  test(`an address that answers with ${what} is no flow server`, async (t) => {
    const other = await startHttpServer((_request, response) => {
      response.writeHead(status, headers);
      response.end(text);
    });
    t.after(() => other.close());
    const { run } = await setup(t, {}, other.origin);
    const { code, stderr } = await run("catalog");
    assert.equal(code, 1);
    assert.match(stderr, new RegExp(`GET /api/catalog.* was answered with ${status}, not as a flow server answers`));
  });
}

test("what a server says cannot reach the terminal as escape sequences", async (t) => {
  const body = JSON.stringify({ error: "no \u001b[2Jentry", code: "NOT_FOUND", request_id: "7" });
  const other = await startHttpServer((_request, response) => {
    response.writeHead(404);
    response.end(body);
  });
  t.after(() => other.close());
  const { run } = await setup(t, {}, other.origin);
  const { code, stderr } = await run("catalog", "get", "a");
  assert.equal(code, 2);
  assert.doesNotMatch(stderr, /\u001b/);
});

test("a server that reads too many documents at the moment is sent the document again, and no other refusal is", async (t) => {
  let calls = 0;
  let refusals = 2;
  const busy = await startHttpServer((_request, response) => {
    calls += 1;
    const refused = calls <= refusals;
    const answer = { status: "success", path: "a", kind: "playbook", catalog_id: "1", version: 1, warnings: [] };
    const refusal = { error: "4 large documents of this user are before it", code: "RATE_LIMITED", request_id: "1" };
    response.writeHead(refused ? 429 : 200, { "content-type": "application/json", "retry-after": "1" });
    response.end(JSON.stringify(refused ? refusal : answer));
  });
  t.after(() => busy.close());
  const { run } = await setup(t, { "a.yaml": playbook("a") }, busy.origin);
  const { code, stdout, stderr } = await run("register", "a.yaml");
  assert.deepEqual([code, stdout, calls], [0, "a.yaml: playbook a registered as version 1\n", 3], stderr);
  [calls, refusals] = [0, 100];
  const refused = await run("register", "a.yaml");
  assert.deepEqual([refused.code !== 0, calls], [true, 6]);
  assert.match(refused.stderr, /large documents of this user/);
});
