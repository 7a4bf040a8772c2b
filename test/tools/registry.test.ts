import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { RUNNABLE_KINDS } from "../../src/schema/words/playbook.ts";
import { createToolRegistry, type ToolSettings } from "../../src/tools/registry.ts";
import { toolCall } from "../support/service/tool-call.ts";

const settings: ToolSettings = { allowPrivate: [], store: { load: () => Promise.resolve(null) } };

test("every kind with a driver gives one tool, the same at each call", async () => {
  const registry = createToolRegistry(settings);
  const ofWorker = ["playbook", "workbook", "wait"];
  for (const kind of RUNNABLE_KINDS.filter((kind) => !ofWorker.includes(kind))) {
    const [first, second] = await Promise.all([registry.get(kind), registry.get(kind)]);
    assert.equal(first, second, kind);
    assert.notEqual((await first?.run(toolCall({})))?.error?.code, "KIND_NOT_AVAILABLE", kind);
  }
  await registry.close();
});

for (const [kind, expected] of [
  ["container", /this program has no runner for it/],
  ["htpt", /no such kind is known.*http, shell/],
  ["playbook", /carried out by the worker/],
  ["wait", /carried out by the worker/],
  ["constructor", /no such kind is known/],
] as [string, RegExp][]) {
  test(`kind ${kind} gives a tool that says why it cannot be run`, async () => {
    const tool = await createToolRegistry(settings).get(kind);
    const { error } = await tool.run(toolCall({}));
    assert.equal(error?.kind, "configuration");
    assert.match(error?.message ?? "", expected);
  });
}

test("a kind that the worker does not allow names the setting", async () => {
  const registry = createToolRegistry({ ...settings, kinds: ["noop"] });
  assert.equal((await (await registry.get("noop")).run(toolCall({}))).status, "ok");
  const { error } = await (await registry.get("shell")).run(toolCall({ cmd: "true" }));
  assert.match(error?.message ?? "", /add shell to FLOW_WORKER_TOOLS/);
});

test("allowed private ranges reach the http tool", async () => {
  const registry = createToolRegistry(settings);
  const { error } = await (await registry.get("http")).run(toolCall({ url: "http://127.0.0.1:9/" }));
  assert.equal(error?.code, "EGRESS_REFUSED");
  await registry.close();
});

test("an invalid range is reported when the registry is created", () => {
  assert.throws(() => createToolRegistry({ ...settings, allowPrivate: ["local"] }), { code: "INVALID_SETTING" });
});

test("a closed registry gives no tools and can be closed again", async () => {
  const registry = createToolRegistry(settings);
  await registry.get("noop");
  await registry.close();
  await registry.close();
  await assert.rejects(registry.get("noop"), { code: "INTERNAL" });
});

/** Addresses of the modules that a process loads which makes the registry and asks for one kind. */
async function modulesLoadedFor(kind: string): Promise<string> {
  const hook = "export function load(url, context, next) { process._rawDebug(url); return next(url, context); }";
  const script = `
    import { register } from "node:module";
    register(${JSON.stringify(`data:text/javascript,${encodeURIComponent(hook)}`)});
    const { createToolRegistry } = await import(${JSON.stringify(new URL("../../src/tools/registry.js", import.meta.url).href)});
    await createToolRegistry({ allowPrivate: [], store: {} }).get(${JSON.stringify(kind)});
  `;
  const { stderr } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script]);
  return stderr;
}

test("a driver is loaded only when its kind is asked for", async () => {
  const drivers = /node_modules\/(undici|postgres|@modelcontextprotocol|@duckdb)\//;
  assert.doesNotMatch(await modulesLoadedFor("noop"), drivers);
  assert.match(await modulesLoadedFor("sqldb"), drivers);
});
