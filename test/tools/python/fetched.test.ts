import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, beforeEach, test } from "node:test";
import { createEgressGuard } from "../../../src/platform/http/egress.ts";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import type { Credential } from "../../../src/tools/contract/tool.ts";
import { createHttpTool } from "../../../src/tools/http/http.ts";
import { createToolRegistry } from "../../../src/tools/registry.ts";
import { SCRIPT_AUTH } from "../../../src/tools/scripts/auth.ts";
import { createScriptFetcher } from "../../../src/tools/scripts/http.ts";
import { startHttpServer } from "../../support/servers/http-server.ts";
import { toolCall } from "../../support/service/tool-call.ts";
import { pythonCall, testTool } from "../python-call.ts";

// Language document, section 8: `script.source` of type http.

const DOUBLE = "def main(n):\n    return n * 2\n";
const DOUBLE_SHA256 = createHash("sha256").update(DOUBLE).digest("hex");

/** What was asked for, since the test began. */
let asked: { url: string; headers: NodeJS.Dict<string | string[]>; method: string }[] = [];
beforeEach(() => {
  asked = [];
});

const server = await startHttpServer((request, response) => {
  const { url = "", headers, method = "" } = request;
  asked.push({ url, headers, method });
  const { pathname } = new URL(url, "http://x");
  if (pathname === "/secret.py" && headers.authorization !== "Bearer t0ken") return void response.writeHead(401).end();
  if (pathname === "/slow.py") return;
  if (pathname === "/large.py") return void response.writeHead(200).end(`#${"x".repeat(5 * 1024 * 1024)}`);
  if (pathname === "/moved.py") return void response.writeHead(302, { location: "http://169.254.169.254/x" }).end();
  if (pathname === "/bytes.py") return void response.writeHead(200).end(Buffer.from([0xff, 0x00]));
  if (pathname === "/changed.py") return void response.writeHead(200).end("result = 'other'");
  if (pathname === "/tagged.py") {
    if (headers["if-none-match"] === '"v1"') return void response.writeHead(304, { etag: '"v1"' }).end();
    return void response.writeHead(200, { etag: '"v1"' }).end(DOUBLE);
  }
  const known = pathname === "/double.py" || pathname === "/scripts/double.py" || pathname === "/secret.py";
  if (!known) return void response.writeHead(404).end("no");
  response.writeHead(200, { "content-type": "text/x-python" }).end(DOUBLE);
});
const tools = createToolRegistry({ allowPrivate: "all", store: { load: () => Promise.resolve(null) } });
after(() => Promise.all([server.close(), tools.close()]));

async function run(script: JsonObject | string, auth: Record<string, Credential> = {}, n: number | string | null = 21) {
  return await (await tools.get("python")).run(toolCall({ script }, { input: { n }, auth }));
}

function at(path: string, more: JsonObject = {}): JsonObject {
  return { source: { type: "http", endpoint: `${server.origin}${path}`, ...more } };
}

test("a script behind an address is fetched and run", async () => {
  const { status, data } = await run(at("/double.py", { headers: { "x-key": "k" }, method: "post" }));
  assert.deepEqual([status, data], ["ok", 42]);
  assert.deepEqual([asked[0]?.headers["x-key"], asked[0]?.method], ["k", "POST"]);
});

test("the address may be the uri, and a relative uri stands below an endpoint that ends in a slash", async () => {
  assert.equal((await run(`${server.origin}/double.py`)).data, 42);
  assert.equal((await run({ uri: `${server.origin}/double.py` })).data, 42);
  assert.equal((await run({ uri: "double.py", ...at("/scripts/") })).data, 42);
  assert.equal((await run({ uri: "the-name-of-it.py", ...at("/double.py") })).data, 42);
  assert.deepEqual(
    asked.map(({ url }) => url),
    ["/double.py", "/double.py", "/scripts/double.py", "/double.py"],
  );
});

test("a script that is not there fails as its request does", async () => {
  const { error } = await run(at("/missing.py"));
  assert.deepEqual([error?.kind, error?.code], ["not_found", "HTTP_404"]);
});

test("an error in a fetched script names its address, without the query, and the line", async () => {
  const { error } = await run(at("/double.py?key=geheim"), {}, null);
  assert.equal(error?.code, "TypeError");
  assert.match(error?.message ?? "", /double\.py:2/);
  assert.doesNotMatch(JSON.stringify(error), /geheim/);
});

const token: Credential = { name: "scripts", type: "bearer", data: { token: "t0ken" } };
const wrong: Credential = { name: "other", type: "bearer", data: { token: "wrong" } };

test("a script's own credential authenticates its request, before that of the task", async () => {
  const script = at("/secret.py", { auth: "scripts" });
  assert.equal((await run(script, { [SCRIPT_AUTH]: token, default: wrong })).data, 42);
  assert.equal((await run(at("/secret.py"), { default: token })).data, 42);
  assert.equal(
    (await run(at("/secret.py", { auth: { type: "bearer", token: "t0ken" } }), { default: wrong })).data,
    42,
  );
});

test("a script without its credential fails with kind auth", async () => {
  assert.equal((await run(at("/secret.py"))).error?.kind, "auth");
  assert.equal((await run(at("/secret.py"), { default: wrong })).error?.kind, "auth");
});

test("a script that is larger than 4 MiB, or not text, does not run", async () => {
  assert.equal((await run(at("/large.py"))).error?.code, "RESPONSE_TOO_LARGE");
  const { error } = await run(at("/bytes.py"));
  assert.deepEqual([error?.kind, /is not a script/.test(error?.message ?? "")], ["configuration", true]);
});

test("a source's time-out ends its request", async () => {
  const { error } = await run(at("/slow.py", { timeout: 0.05 }));
  assert.equal(error?.kind, "timeout");
});

test("an address that may not be reached is refused, also behind a redirect", async () => {
  const guarded = createToolRegistry({ allowPrivate: ["127.0.0.1"], store: { load: () => Promise.resolve(null) } });
  const python = await guarded.get("python");
  for (const endpoint of ["http://10.0.0.1/a.py", `${server.origin}/moved.py`]) {
    const { error } = await python.run(toolCall({ script: { source: { type: "http", endpoint } } }));
    assert.equal(error?.code, "EGRESS_REFUSED", endpoint);
  }
  await guarded.close();
});

test("a worker that may not run http tasks fetches no script", async () => {
  const kinds = ["python"];
  const closed = createToolRegistry({ allowPrivate: "all", store: { load: () => Promise.resolve(null) }, kinds });
  const { error } = await (await closed.get("python")).run(toolCall({ script: at("/double.py") }));
  assert.match(error?.message ?? "", /add http to FLOW_WORKER_TOOLS/);
  await closed.close();
});

test("a fetched script that is not the one whose sha256 the playbook names does not run, and is not kept", async () => {
  const script = { ...at("/changed.py"), sha256: DOUBLE_SHA256 };
  for (let times = 0; times < 2; times += 1) assert.equal((await run(script)).error?.code, "SCRIPT_CHANGED");
  assert.equal(asked.length, 2);
});

test("a script whose sha256 is named is fetched once", async () => {
  const script = at("/double.py", { sha256: DOUBLE_SHA256.toUpperCase() });
  for (let times = 0; times < 3; times += 1) assert.equal((await run(script)).data, 42);
  assert.equal(asked.length, 1);
});

test("a script with an etag is asked for again after ten seconds, and sent again only when it has changed", async () => {
  let now = 0;
  const http = createHttpTool({ egress: createEgressGuard({ allowPrivate: "all" }) });
  const python = testTool({
    scriptFetcher: createScriptFetcher(
      () => Promise.resolve(http),
      () => now,
    ),
  });
  const config = { script: at("/tagged.py") };
  const runAt = async (ms: number, auth: Record<string, Credential> = {}) => {
    now = ms;
    const { data, error } = await python.run(pythonCall("", { config, input: { n: 2 }, auth }));
    assert.equal(data, 4, JSON.stringify(error));
    return asked.map(({ headers }) => headers["if-none-match"] ?? "none");
  };
  assert.deepEqual(await runAt(0), ["none"]);
  assert.deepEqual(await runAt(9_999), ["none"]);
  assert.deepEqual(await runAt(10_000), ["none", '"v1"']);
  assert.deepEqual(await runAt(19_999), ["none", '"v1"'], "what was confirmed is fresh again");
  assert.deepEqual((await runAt(19_999, { default: token })).at(-1), "none", "another caller has no part in it");
  await python.close?.();
});

test("a script without etag or sha256 is fetched each time", async () => {
  await run(at("/double.py"));
  await run(at("/double.py"));
  assert.equal(asked.length, 2);
});
