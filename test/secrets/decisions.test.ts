import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import postgres from "postgres";
import { runFlow } from "../cli/in-process.ts";
import { createServedDatabase } from "../support/database/postgres.ts";
import { ownDatabase } from "../support/engine/key-ring.ts";
import { folderWith } from "../support/service/cli-process.ts";
import { startServe } from "../support/service/serve.ts";

/*
 * Arcs, guards, `admit`, `set`, loops and the defaults of a workload read what the tool gave, also where a secret stands in it, on
 * both runtimes; and what they decided tells no secret. Of seven characters a secret is sealed nowhere, from eight on everywhere.
 */

const HEAD = "apiVersion: flow/v2\nkind: Playbook\n";
const keychain = (credential: string) => `keychain: [{ name: mine, kind: credential, credential: ${credential} }]\n`;

/** The secret stands in the document, as authors compare with it: what runs and is told must not have it. */
function parentPlaybook(name: string, secret: string): string {
  return `${HEAD}metadata: { name: ${name}, path: ${name} }
${keychain(name)}workflow:
  - step: login
    tool:
      kind: python
      input: { token: "{{ keychain.mine.token }}" }
      code: |
        result = {"password": token, "word": "pre" + token + "_post", "rows": [{"name": token, "n": 1}, {"name": "x", "n": 2}], "deep": {"list": [token]}}
    set: { kept: "{{ login }}", word: "{{ login.word }}", size: "{{ login.password | length }}" }
    next:
      spec: { mode: inclusive }
      arcs:
        - { step: equal, when: "{{ login.password == '${secret}' and output.data.password | length == ${secret.length} }}", args: { arg: "{{ login.deep }}" } }
        - { step: wrong, when: "{{ login.password | length != ${secret.length} or 'sealed' in login.password }}" }
        - { step: wrong, when: "{{ vars.word != 'pre${secret}_post' }}" }
        - { step: wrong, when: "{{ '${secret}_p' not in ctx.kept.word }}" }
  - step: equal
    when: "{{ kept.rows[0].name == '${secret}' and arg.list[0] == '${secret}' and input.arg.list | length == 1 }}"
    admit: [{ allow: "{{ word == 'pre${secret}_post' and size == ${secret.length} }}" }]
    tool:
      kind: python
      input: { expected: "{{ keychain.mine.token }}", kept: "{{ kept }}", word: "{{ word }}", arg: "{{ arg }}" }
      code: |
        assert kept == {"password": expected, "word": word, "rows": [{"name": expected, "n": 1}, {"name": "x", "n": 2}], "deep": arg}, "kept"
        assert word == "pre" + expected + "_post" and arg == {"list": [expected]}, "word"
        result = {"ok": True}
    next: { arcs: [{ step: each }] }
  - step: each
    loop: { in: "{{ login.rows }}", iterator: row, spec: { mode: parallel } }
    tool:
      kind: python
      input: { row: "{{ row }}", expected: "{{ keychain.mine.token }}" }
      code: |
        assert row["name"] == (expected if row["n"] == 1 else "x"), "row"
        result = {"name": row["name"]}
    next:
      arcs:
        - { step: child, when: "{{ each.results[0].name == '${secret}' and result.stats.success == 2 }}" }
        - { step: wrong }
  - step: child
    tool: { kind: playbook, path: ${name}_child, args: { token: "{{ login.word }}" } }
    next: { arcs: [{ step: end, when: "{{ child.token == 'pre${secret}_post' and child.ok == true }}" }, { step: wrong }] }
  - { step: wrong, tool: { kind: python, code: "raise Exception('the wrong branch')" } }
  - { step: end, tool: { kind: noop, result: { size: "{{ size }}", word: "{{ word }}", child: "{{ child.size }}" } } }
`;
}

function childPlaybook(name: string, secret: string): string {
  return `${HEAD}metadata: { name: ${name}_child, path: ${name}_child }
workload: { token: null, size: "{{ workload.token | length }}", ok: "{{ token == 'pre${secret}_post' }}", url: "https://h/?t={{ workload.token | urlencode }}" }
workflow:
  - { step: end, when: "{{ workload.token | length == size }}", tool: { kind: noop, result: { token: "{{ workload.token }}", size: "{{ size }}", ok: "{{ ok }}", url: "{{ url }}" } } }
`;
}

/** Errors of what the engine evaluates quote values: of a secret nothing, also where the quote is cut off. */
function failingPlaybook(name: string, loop: string): string {
  return `${HEAD}metadata: { name: ${name}, path: ${name} }
${keychain("quoted")}workflow:
  - step: login
    tool: { kind: python, input: { all: "{{ keychain.mine }}" }, code: "result = all" }
    next: { arcs: [{ step: each }] }
  - step: each
    loop: ${loop}
    tool: { kind: noop }
`;
}

interface Runtimes {
  /** Everything that the database holds but the documents. */
  stored(): Promise<string>;
  /** Runs a playbook; what the command line and the API tell of it. */
  run(path: string, runtime: "local" | "server"): Promise<{ code: number | null; told: string }>;
}

/** A server with these credentials, and a folder with these documents, for both runtimes. */
async function setUp(
  t: TestContext,
  credentials: Readonly<Record<string, Record<string, unknown>>>,
  documents: Readonly<Record<string, string>>,
): Promise<Runtimes> {
  const database = await createServedDatabase();
  const files = Object.fromEntries(Object.entries(documents).map(([name, text]) => [`${name}.yaml`, text]));
  const folder = await folderWith(t, files);
  const vaults = Object.entries(credentials).map(([name, data]) => [name, { type: "custom", data }] as const);
  await writeFile(join(folder, "credentials.json"), JSON.stringify(Object.fromEntries(vaults)));
  const settings = { ...ownDatabase(database.url), FLOW_WORKER_TOOLS: "all", FLOW_LOG_LEVEL: "debug" };
  const { url, process, ended } = await startServe(t, folder, settings, ["--role", "all"]);
  const post = async (path: string, body: object) => {
    const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const response = await fetch(`${url}${path}`, init);
    assert.ok(response.ok, await response.text());
  };
  for (const [name, vault] of vaults) await post("/api/credentials", { name, ...vault, meta: { playbooks: ["**"] } });
  for (const content of Object.values(documents)) await post("/api/catalog/register", { content });
  const get = async (path: string) => await (await fetch(`${url}${path}`)).text();
  const seen = new Set<string>();
  return {
    async stored() {
      const texts = await databaseText(database.url);
      process.kill("SIGTERM");
      const { stdout, stderr } = await ended;
      return texts + stdout + stderr;
    },
    async run(path, runtime) {
      const where =
        runtime === "local" ? [`${path}.yaml`, "--credentials", "credentials.json"] : [path, "--runtime", "server"];
      const environment = { HOME: folder, FLOW_SERVER_URL: url };
      const args = ["run", ...where, "--json", "--verbose", "--record", `${path}-${runtime}.jsonl`];
      const { code, stdout, stderr } = await runFlow(folder, args, environment);
      let told = stdout + stderr + (await readFile(join(folder, `${path}-${runtime}.jsonl`), "utf8"));
      if (runtime === "local") return { code, told };
      const { executions } = JSON.parse(await get("/api/executions")) as { executions: { execution_id: string }[] };
      for (const { execution_id: id } of executions.filter((execution) => !seen.has(execution.execution_id))) {
        seen.add(id);
        for (const part of ["", "/events?limit=500", "/result", "/result?sealed=true", "/stream"]) {
          told += await get(`/api/executions/${id}${part}`);
        }
        told += (await runFlow(folder, ["logs", id], environment)).stdout;
      }
      return { code, told };
    },
  };
}

/** Every row of every table but those of the documents, as text. */
async function databaseText(url: string): Promise<string> {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  try {
    const tables = await sql<{ name: string }[]>`
      select format('%I.%I', schemaname, tablename) as name from pg_tables
      where schemaname not in ('pg_catalog', 'information_schema') and tablename not like '%catalog%'`;
    const texts = [];
    for (const { name } of tables) {
      const rows = await sql.unsafe<{ row: string }[]>(`select t::text as row from ${name} t`);
      texts.push(name, ...rows.map(({ row }) => row));
    }
    return texts.join("\n");
  } finally {
    await sql.end();
  }
}

test("secrets of 7, 8 and 9 characters are compared, measured and passed on as they are, on both runtimes", async (t) => {
  const cases = [7, 8, 9].map((length) => {
    const secret = `q${randomBytes(8).toString("hex")}`.slice(0, length);
    return { name: `deciding_${length}`, length, secret };
  });
  const documents = Object.fromEntries(
    cases.flatMap(({ name, secret }) => [
      [name, parentPlaybook(name, secret)],
      [`${name}_child`, childPlaybook(name, secret)],
    ]),
  );
  const credentials = Object.fromEntries(cases.map(({ name, secret }) => [name, { token: secret }]));
  const { run, stored } = await setUp(t, credentials, documents);
  for (const { name, length, secret } of cases) {
    for (const runtime of ["local", "server"] as const) {
      const { code, told } = await run(name, runtime);
      const what = `${length} characters, ${runtime}`;
      assert.equal(code, 0, `${what}: ${told}`);
      assert.match(told, new RegExp(`"size": ?${length}\\b`), what);
      assert.match(told, new RegExp(`"child": ?${length + 8}\\b`), what);
      // What is short stands in values as it is.
      assert.equal(told.includes(secret), length < 8, `${what}: it is told`);
      if (length >= 8) assert.match(told, /"word": ?"pre\[secret\]_post"/, what);
    }
  }
  const texts = await stored();
  for (const { length, secret } of cases) {
    assert.equal(texts.includes(secret), length < 8, `${length} characters: the database or a log has it`);
  }
});

test("an evaluation error quotes no secret, whole or cut off, and does not reveal a secret number", async (t) => {
  const long = randomBytes(90).toString("hex");
  const pin = 40_000_000 + randomBytes(3).readUIntBE(0, 3);
  const documents = {
    long: failingPlaybook("long", `{ in: [1], spec: { mode: parallel, max_in_flight: "{{ login.long }}" } }`),
    whole: failingPlaybook("whole", `{ in: [1], spec: { mode: parallel, max_in_flight: "no {{ login.token }}" } }`),
    count: failingPlaybook("count", `{ in: "{{ login.pin }}" }`),
  };
  const token = randomBytes(6).toString("hex");
  const { run, stored } = await setUp(t, { quoted: { long, token, pin } }, documents);
  const found = (text: string) => [long.slice(0, 8), token, String(pin)].filter((part) => text.includes(part));
  for (const runtime of ["local", "server"] as const) {
    for (const [name, why] of [
      ["long", /must be a whole number from 1, got \\?"\[secret\]/],
      ["whole", /must be a whole number from 1, got \\?"no \[secret\]/],
      ["count", /is a secret number/],
    ] as const) {
      const { code, told } = await run(name, runtime);
      assert.equal(code, 1, `${runtime} ${name}: ${told}`);
      assert.match(told.replaceAll("\\\\", "\\").replaceAll('\\\\"', '\\"'), why, `${runtime} ${name}`);
      assert.deepEqual(found(told), [], `${runtime} ${name}`);
    }
  }
  assert.deepEqual(found(await stored()), []);
});
