import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { compileProgram } from "../../src/engine/program/program.ts";
import { loadPlaybook } from "../../src/language/load/load.ts";
import { createLocalRuntime } from "../../src/local/runtime.ts";
import { formatDiagnostic } from "../../src/schema/words/diagnostic.ts";
import type { Json, JsonObject } from "../../src/schema/words/json.ts";
import { createToolRegistry } from "../../src/tools/registry.ts";
import type { RecordedRequest } from "../support/servers/http-server.ts";
import { type Answer, secretBench } from "../support/service/secret-source.ts";
import { serviceAccount } from "../support/service/service-account.ts";
import { ROOT } from "./run-flow.ts";

/* docs/keychain.md: every block is loaded without a warning, and every entry in it is resolved, against a server in the services' place. */

const HEAD = "apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: docs }\nworkload: { stage: prod }\n";

const markdown = readFileSync(join(ROOT, "docs/keychain.md"), "utf8");
const blocks = [...markdown.matchAll(/^```yaml\n(.*?)^```/gms)].map(([, yaml = ""]) => yaml);

/** The names of a block's entries. */
function entriesOf(yaml: string): string[] {
  return [...yaml.matchAll(/^ {2}- (?:\{ )?name: (\w+)/gm)].map(([, name = ""]) => name);
}

/** The block as a whole document that reads each of its entries. */
function documentOf(yaml: string): string {
  if (yaml.startsWith("apiVersion:")) return yaml;
  if (yaml.startsWith("workflow:")) return `${HEAD}keychain: [{ name: crm, kind: credential }]\n${yaml}`;
  // What a block reads of another block's entry.
  const db = "  - { name: db, kind: static, data: { user: u, password: p } }\n";
  const before = yaml.includes("keychain.db.") ? yaml.replace("keychain:\n", `keychain:\n${db}`) : yaml;
  const reads = entriesOf(yaml).map((name) => `${name}: "{{ keychain.${name} | tojson }}"`);
  return `${HEAD}${before}workflow: [{ step: read, tool: { kind: noop, result: { ${reads.join(", ")} } } }]\n`;
}

test("every block is valid, without a warning", () => {
  assert.ok(blocks.length >= 6, `${blocks.length} blocks`);
  for (const block of blocks) {
    const { diagnostics } = loadPlaybook(documentOf(block), "docs/keychain.md");
    assert.deepEqual(diagnostics.map(formatDiagnostic), [], block);
  }
});

/** An identity token that ends in 2286. */
const IDENTITY = `${Buffer.from('{"alg":"none"}').toString("base64url")}.${Buffer.from('{"exp":9999999999}').toString("base64url")}.`;

/** Answers as the services do that the page speaks of. */
function services({ url, headers }: RecordedRequest): Answer {
  if (headers["x-amz-target"] !== undefined) return [200, { SecretString: '{"user":"u","password":"p"}' }];
  if (url === "/account") return [200, { access_token: "account", id_token: IDENTITY, expires_in: 60 }];
  return [200, { access_token: `of ${url}`, expires_in: 60 }];
}

/** Resolves every entry of a block. */
async function resolved(t: TestContext, block: string): Promise<Record<string, JsonObject>> {
  const { server, source } = await secretBench(t, services, (origin) => ({ addresses: { awsUrl: origin } }));
  const credentials: Record<string, { type: string; data: JsonObject }> = {
    crm_client: { type: "oauth2", data: { client_id: "c", client_secret: "s", token_url: `${server.origin}/crm` } },
    secrets_reader: { type: "custom", data: { access_key_id: "a", secret_access_key: "b", region: "eu-west-1" } },
    legacy_basic: { type: "basic", data: { username: "u", password: "p" } },
    deployer: serviceAccount(`${server.origin}/account`).credential,
    api_token: { type: "bearer", data: { token: "t" } },
    pg_prod: { type: "sqldb", data: { host: "h" } },
  };
  const runtime = createLocalRuntime({
    tools: (store) => createToolRegistry({ allowPrivate: "all", store }),
    credentials: {
      find(name) {
        const found = credentials[name];
        return Promise.resolve(found === undefined ? undefined : { name, ...found });
      },
    },
    secretSource: source,
  });
  t.after(() => runtime.close());
  const text = documentOf(block).replace(/https:\/\/(auth|legacy)\.example\.com/g, server.origin);
  const { playbook } = loadPlaybook(text, "docs/keychain.md");
  assert.ok(playbook);
  const program = { program: compileProgram(playbook), file: "docs/keychain.md", warnings: [] };
  const state = await runtime.run(program, { input: {} }, new AbortController().signal);
  assert.equal(state.status, "COMPLETED", JSON.stringify(state.error));
  // A secret travels sealed: what is kept of it is looked at by its shape alone.
  const kept = state.steps["read"]?.result;
  assert.ok(kept != null && "value" in kept);
  const value = kept.value as Record<string, string>;
  return Object.fromEntries(Object.entries(value).map(([name, json]) => [name, JSON.parse(json) as JsonObject]));
}

const FIELDS: Readonly<Record<string, readonly string[]>> = {
  db: ["user", "password", "key"],
  crm: ["access_token", "expires_in"],
  session: ["access_token", "expires_in"],
  run: ["id_token", "token"],
  api: ["token"],
  labels: ["tenant"],
};

for (const block of blocks.filter((yaml) => yaml.startsWith("keychain:"))) {
  test(`the entries ${entriesOf(block).join(", ")} are resolved as they are written`, async (t) => {
    const found = await resolved(t, block);
    assert.deepEqual(Object.keys(found), entriesOf(block));
    for (const [name, fields] of Object.entries(found)) {
      const expected: readonly Json[] =
        block.includes("kind: credential") && name === "db" ? ["host"] : (FIELDS[name] ?? []);
      assert.deepEqual(Object.keys(fields), expected, name);
    }
  });
}
