import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import postgres from "postgres";
import { runFlow } from "../cli/in-process.ts";
import { createServedDatabase } from "../support/database/postgres.ts";
import { ownDatabase } from "../support/engine/key-ring.ts";
import { startOtlpReceiver } from "../support/servers/otlp-receiver.ts";
import { flow, folderWith } from "../support/service/cli-process.ts";
import { type Serving, startServe } from "../support/service/serve.ts";
import { assertArrived } from "./arrivals.ts";
import { type Canaries, createCanaries } from "./canary.ts";
import { credentialsWith } from "./credentials.ts";
import { startEchoServer } from "./echo-server.ts";
import { CANARY_NAMES, documentsFor } from "./playbooks.ts";

/*
 * A server with a worker: whatever a secret passes through, it arrives, and nothing that is stored, logged, traced, streamed,
 * answered or printed has it in any form.
 */

interface Stand {
  server: Serving;
  folder: string;
  /** Runs the command line against the server, in this process. */
  cli(...args: string[]): Promise<string>;
  /** Runs `flow run` in a process of its own, whose every output is seen. */
  flowRun(...args: string[]): Promise<string>;
  get(path: string): Promise<string>;
}

async function setUp(t: TestContext) {
  const canaries = createCanaries(CANARY_NAMES);
  const database = await createServedDatabase();
  const echo = await startEchoServer(t, canaries.values["granted"] ?? "");
  const receiver = await startOtlpReceiver();
  t.after(() => receiver.close());
  const folder = await folderWith(t, {});
  const settings = {
    ...ownDatabase(database.url),
    FLOW_WORKER_TOOLS: "all",
    FLOW_HTTP_ALLOW_PRIVATE: "all",
    FLOW_LOG_LEVEL: "debug",
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.endpoint,
  };
  const server = await startServe(t, folder, settings, ["--role", "all"]);
  const environment = { HOME: folder, FLOW_SERVER_URL: server.url };
  const cli = async (...args: string[]) => {
    const { stdout, stderr } = await runFlow(folder, args, environment);
    return stdout + stderr;
  };
  const flowRun = async (...args: string[]) => {
    const { stdout, stderr } = await flow(folder, ["run", ...args], environment);
    return stdout + stderr;
  };
  const get = async (path: string) => await (await fetch(`${server.url}${path}`)).text();
  for (const [name, text] of Object.entries(documentsFor(echo.origin))) {
    await writeFile(join(folder, `${name}.yaml`), text);
    await post(server, "/api/catalog/register", { content: text });
  }
  for (const [name, credential] of Object.entries(credentialsWith(canaries, database, echo.origin))) {
    await post(server, "/api/credentials", { name, ...credential, meta: { playbooks: ["**"] } });
  }
  return { canaries, echo, receiver, database, stand: { server, folder, cli, flowRun, get } };
}

async function post(server: Serving, path: string, body: object) {
  const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(`${server.url}${path}`, init);
  const answer = await response.text();
  assert.ok(response.ok, answer);
  return JSON.parse(answer) as { execution_id: string };
}

/** Runs a playbook to its end. */
async function run(server: Serving, path: string) {
  const { execution_id: id } = await post(server, "/api/execute", { path });
  const response = await fetch(`${server.url}/api/executions/${id}/result?wait_ms=30000`);
  return { id, ...((await response.json()) as { status: string; error: unknown }) };
}

/** Everything that the API and the command line tell of executions, by where it was told. */
async function told({ cli, get }: Stand, ids: readonly string[]): Promise<Record<string, string>> {
  const texts: Record<string, string> = {
    "GET executions": await get("/api/executions"),
    "GET pools": await get("/api/worker/pools"),
    "GET credentials": await get("/api/credentials"),
    "flow executions": await cli("executions", "--json"),
    metrics: await get("/metrics"),
  };
  for (const id of ids) {
    texts[`GET ${id}`] = await get(`/api/executions/${id}`);
    texts[`GET ${id} events`] = await get(`/api/executions/${id}/events?limit=500`);
    texts[`GET ${id} result`] = await get(`/api/executions/${id}/result`);
    texts[`GET ${id} result, for workers`] = await get(`/api/executions/${id}/result?sealed=true`);
    texts[`GET ${id} stream`] = await get(`/api/executions/${id}/stream`);
    texts[`flow status ${id}`] = await cli("status", id, "--json");
    texts[`flow events ${id}`] = (await cli("events", id, "--json", "--all")) + (await cli("events", id));
  }
  return texts;
}

/** Every row of every table as text; bytes as they are, those that were compressed too. */
async function databaseTexts(url: string): Promise<Record<string, string>> {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  try {
    const texts: Record<string, string> = {};
    const tables = await sql<{ name: string }[]>`
      select format('%I.%I', schemaname, tablename) as name from pg_tables
      where schemaname not in ('pg_catalog', 'information_schema')`;
    for (const { name } of tables) {
      const rows = await sql.unsafe<{ row: string }[]>(`select t::text as row from ${name} t`);
      texts[name] = rows.map(({ row }) => row).join("\n");
    }
    return texts;
  } finally {
    await sql.end();
  }
}

async function fileTexts(folder: string): Promise<Record<string, string>> {
  const texts: Record<string, string> = {};
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    texts[file] = await readFile(file, "latin1");
  }
  return texts;
}

function assertNowhere({ found }: Canaries, texts: Readonly<Record<string, string>>): void {
  const leaks = Object.entries(texts).flatMap(([where, text]) => found(text).map((what) => `${where}: ${what}`));
  assert.deepEqual(leaks, []);
}

/** References to stored results in events. */
function referencesIn(text: string): string[] {
  return [...new Set([...text.matchAll(/"ref":"(noetl:[^"]+)"/g)].map(([, ref]) => ref ?? ""))];
}

test("secrets pass through everything, arrive, and stand nowhere", async (t) => {
  const { canaries, echo, receiver, database, stand } = await setUp(t);
  const { server, folder, cli, flowRun, get } = stand;
  const texts: Record<string, string> = {};
  let goodId = "";
  // Tests of their own: on a machine that is busy all of it together takes more than a minute.
  await t.test("of a run and of one that fails", async () => {
    const good = await run(server, "parent");
    goodId = good.id;
    assert.equal(good.status, "COMPLETED", JSON.stringify(good.error));
    assertArrived(echo, canaries);
    const bad = await run(server, "failing");
    assert.equal(bad.status, "FAILED");
    assert.match(JSON.stringify(bad.error), /cannot use \{'token': '\[secret\]'\} or \[secret\]/);
  });

  await t.test("in what is answered about them, and in the output of flow run", async () => {
    const { executions } = JSON.parse(await get("/api/executions")) as { executions: { execution_id: string }[] };
    const ids = executions.map(({ execution_id }) => execution_id);
    Object.assign(texts, await told(stand, ids));
    texts["flow run"] = await flowRun("parent", "--runtime", "server", "--json", "--record", "events.jsonl");
    texts["flow run, failing"] = await flowRun("failing", "--runtime", "server", "--verbose");
    for (const [where, text] of Object.entries(texts)) {
      if (!where.endsWith("for workers")) assert.doesNotMatch(text, /\[sealed:/, where);
    }
    assert.match(texts[`GET ${goodId} result, for workers`] ?? "", /\[sealed:k1:/);
    assertNowhere(canaries, texts);
  });

  await t.test("in stored results", async () => {
    const stored: Record<string, string> = {};
    for (const ref of referencesIn(Object.values(texts).join())) {
      const query = new URLSearchParams({ ref });
      stored[`${ref}, as stored`] = await get(`/results/resolve?${query}&sealed=true`);
      stored[`${ref}, for people`] = await get(`/results/resolve?${query}`);
      if (ref.includes("/step/hidden/")) stored[`${ref}, printed`] = await cli("result", "get", ref);
    }
    assert.ok(Object.keys(stored).length > 10, "there were results by reference");
    const hidden = Object.keys(stored).filter((name) => name.includes("/step/hidden/"));
    // What its author calls sensitive is shown to operators, who ask for it by its reference; what credentials gave is not.
    for (const name of hidden) {
      const shown = name.endsWith("as stored")
        ? /^"\[sealed:k1:[\w-]+\]"$/
        : /"value":"\[secret\]".*"own":"own-.*"amount":12345678/s;
      assert.match(stored[name] ?? "", shown, name);
    }
    assertNowhere(canaries, stored);
  });

  await t.test("in logs, traces, tables and files, once the server has ended", async () => {
    server.process.kill("SIGTERM");
    const { stdout, stderr } = await server.ended;
    assertNowhere(canaries, { stdout, stderr, spans: JSON.stringify(receiver.spans) });
    assert.ok(receiver.spans.length > 20);
    assertNowhere(canaries, await databaseTexts(database.url));
    const files = await fileTexts(folder);
    assertNowhere(canaries, files);
    assert.match(files[join(folder, "events.jsonl")] ?? "", /\[secret\]/);
  });
});
