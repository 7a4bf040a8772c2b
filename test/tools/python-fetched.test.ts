import assert from "node:assert/strict";
import { after, test } from "node:test";
import { createToolRegistry } from "../../src/tools/registry.ts";
import { startHttpServer } from "../support/http-server.ts";
import { toolCall } from "../support/tool-call.ts";

// Language document, section 8: `script.source` of type http.

const server = await startHttpServer((request, response) => {
  if (request.url !== "/double.py" || request.headers["x-key"] !== "k") return void response.writeHead(404).end("no");
  response.writeHead(200, { "content-type": "text/x-python" }).end("def main(n):\n    return n * 2\n");
});
const tools = createToolRegistry({ allowPrivate: "all", store: { load: () => Promise.resolve(null) } });
after(() => Promise.all([server.close(), tools.close()]));

async function run(path: string, input: { n: number | string }) {
  const source = { type: "http", endpoint: `${server.origin}${path}`, headers: { "x-key": "k" } };
  return await (await tools.get("python")).run(toolCall({ script: { source } }, { input }));
}

test("a script behind an address is fetched and run", async () => {
  const { status, data } = await run("/double.py", { n: 21 });
  assert.deepEqual([status, data], ["ok", 42]);
});

test("a script that is not there fails as its request does", async () => {
  const { error } = await run("/missing.py", { n: 1 });
  assert.deepEqual([error?.kind, error?.code], ["not_found", "HTTP_404"]);
});

test("an error in a fetched script names its address and line", async () => {
  const { error } = await run("/double.py", { n: "x".repeat(3) });
  assert.equal(error, undefined, "text times two is text in Python");
  const source = { type: "http", endpoint: `${server.origin}/double.py`, headers: { "x-key": "k" } };
  const failed = await (await tools.get("python")).run(toolCall({ script: { source } }, { input: { n: null } }));
  assert.equal(failed.error?.code, "TypeError");
  assert.match(failed.error?.message ?? "", /double\.py:2/);
});
