import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { after, before, type TestContext, test } from "node:test";
import type { CliInput, CliValues } from "../../../src/cli/command-line/command.ts";
import { getResult } from "../../../src/cli/executions/result.ts";
import { type Listener, listen } from "../../../src/roles/http/listen.ts";
import { storedResults } from "../../support/database/stored-results.ts";
import { startHttpServer } from "../../support/servers/http-server.ts";
import { openApi } from "../../support/service/api.ts";
import { ONE_STEP } from "../../support/service/api-work.ts";
import { folderWith, startFlow } from "../../support/service/cli-process.ts";

const api = await openApi();
const { work, claimed, refOf, put } = storedResults(api);
let listener: Listener;
before(async () => {
  await work.register("one", ONE_STEP);
  const malformed = () => new Response(null, { status: 400 });
  listener = await listen({ fetch: (request) => api.open.fetch(request), malformed }, { host: "127.0.0.1", port: 0 });
});
after(() => listener.close());

async function stored(text: string, more: Record<string, string> = {}): Promise<string> {
  const command = await claimed("one");
  assert.equal((await put(command, text, more)).status, 200);
  return refOf(command);
}

const sha256 = (text: string | Uint8Array) => createHash("sha256").update(text).digest("hex");
const LONG = JSON.stringify("x".repeat(3_000_000));

async function setup(t: TestContext, url = listener.url) {
  const folder = await folderWith(t, {});
  const environment = { HOME: folder, XDG_CONFIG_HOME: join(folder, "settings"), FLOW_SERVER_URL: url };
  /** In this process, with a standard output of our own. */
  const call = async (ref: string, options: CliValues = {}, isTTY = false) => {
    const stream = () => {
      const parts: Buffer[] = [];
      const to = Object.assign(new PassThrough(), { isTTY });
      to.on("data", (part: Buffer) => parts.push(part));
      return { to, text: () => Buffer.concat(parts).toString() };
    };
    const [stdout, stderr] = [stream(), stream()];
    const io = { stdout: stdout.to, stderr: stderr.to, environment, folder, signal: AbortSignal.timeout(20_000) };
    const input: CliInput = { arguments: [ref], options, io };
    const code = await getResult(input);
    return { code, stdout: stdout.text(), stderr: stderr.text() };
  };
  const start = (...args: string[]) => startFlow(folder, args, environment);
  return { folder, call, start, run: (...args: string[]) => start(...args).ended };
}

test("a payload goes to a pipe byte for byte, however long", async (t) => {
  const { run } = await setup(t);
  for (const text of ['{"z": 1, "a":  [1.0]}', LONG]) {
    const { code, stdout } = await run("result", "get", await stored(text));
    assert.equal(code, 0);
    assert.equal(stdout, text);
  }
});

test("a reader that has seen enough is no error", async (t) => {
  const { start } = await setup(t);
  const run = start("result", "get", await stored(LONG));
  await once(run.process.stdout, "data");
  run.process.stdout.destroy();
  const { code, stderr } = await run.ended;
  assert.deepEqual([code, stderr], [0, ""]);
});

test("with -o it goes to a file, which has its name only when it is whole", async (t) => {
  const { folder, run } = await setup(t);
  const ref = await stored(LONG);
  const { code, stdout, stderr } = await run("result", "get", ref, "-o", "rows.json");
  assert.deepEqual([code, stdout, stderr], [0, "", `${LONG.length} bytes written to rows.json\n`]);
  assert.equal(await readFile(join(folder, "rows.json"), "utf8"), LONG);
  assert.deepEqual(
    (await readdir(folder)).filter((name) => name.startsWith("rows")),
    ["rows.json"],
  );
  const nowhere = await run("result", "get", ref, "-o", "no/such/folder/rows.json");
  assert.notEqual(nowhere.code, 0);
  assert.match(nowhere.stderr, /Cannot write .*no\/such\/folder\/rows\.json/);
});

test("--json prints the metadata with the payload or the file", async (t) => {
  const { call, folder } = await setup(t);
  const text = '{"rows": [1, 2]}';
  const ref = await stored(text);
  const about = { ref, content_type: "application/json", bytes: text.length, sha256: sha256(text) };
  assert.deepEqual(JSON.parse((await call(ref, { json: true })).stdout), { ...about, payload: { rows: [1, 2] } });
  const file = join(folder, "a.json");
  assert.deepEqual(JSON.parse((await call(ref, { json: true, output: "a.json" })).stdout), { ...about, file });
  assert.equal(await readFile(file, "utf8"), text);
});

test("a terminal gets text that is short, without what it would obey; the rest only when that is asked for", async (t) => {
  const { call } = await setup(t);
  const short = await stored('{"a": 1}');
  assert.equal((await call(short, {}, true)).stdout, '{"a": 1}\n');
  const long = await stored(LONG);
  await assert.rejects(call(long, {}, true), {
    code: "USAGE",
    message: /longer than 1,048,576 bytes.*-o FILE.*'-o -'/,
  });
  assert.equal((await call(long, { output: "-" }, true)).stdout, LONG);
  const binary = await stored("\u0000\u0001", { content_type: "application/octet-stream" });
  await assert.rejects(call(binary, {}, true), { code: "USAGE", message: /application\/octet-stream, no text/ });
  const rude = await stored("a\u001b[2Jb\n", { content_type: "text/plain" });
  assert.equal((await call(rude, {}, true)).stdout, "a\ufffd[2Jb\n");
  assert.equal((await call(rude)).stdout, "a\u001b[2Jb\n", "a pipe gets what is there");
});

test("an unknown reference is reported with the server's message", async (t) => {
  const { run } = await setup(t);
  const { code, stderr } = await run("result", "get", "noetl://execution/1/step/a/task/a/run/1");
  assert.notEqual(code, 0);
  assert.match(stderr, /is not available: it was never stored or has been deleted/);
  assert.equal((await run("result", "take", "x")).code, 2);
});

test("a payload that breaks off, or is damaged on its way, leaves no file and no success", async (t) => {
  const text = "x".repeat(100_000);
  const breaking = await startHttpServer((request, response) => {
    const isShort = request.url.includes("short");
    response.writeHead(200, { "content-length": text.length, etag: `"${sha256("y")}"`, "content-type": "text/plain" });
    if (!isShort) return response.end(text);
    response.write(text.slice(0, 50_000));
    return setImmediate(() => response.destroy());
  });
  t.after(() => breaking.close());
  const { call, folder } = await setup(t, breaking.origin);
  await assert.rejects(call("damaged", { output: "a" }), { code: "SERVER_UNREACHABLE", message: /damaged on its way/ });
  await assert.rejects(call("short", { output: "a" }), { code: "SERVER_UNREACHABLE" });
  await assert.rejects(call("short"), { code: "SERVER_UNREACHABLE" });
  assert.deepEqual(
    (await readdir(folder)).filter((name) => name.startsWith("a")),
    [],
  );
});
