import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { loadCatalogDocument } from "../../../src/language/load/catalog-document.ts";
import { loadPlaybook } from "../../../src/language/load/load.ts";
import { formatDiagnostic } from "../../../src/schema/words/diagnostic.ts";
import { HEAD } from "../load-support.ts";

/**
 * Forms that the language page allows, section by section, and those that real documents have besides: none may be refused, whatever
 * is added to the checks. Warnings are allowed.
 */
const TOOLS: Readonly<Record<string, readonly string[]>> = {
  "tool forms (section 3)": [
    "{ kind: noop }",
    "{ kind: http, name: get, url: u }",
    "[{ name: a, kind: noop }, { name: b, kind: noop }]",
    "[{ a: { kind: noop } }, { kind: noop }]",
    "{ a: { kind: noop }, b: { kind: noop } }",
    "noop",
    "{ kind: http, spec: { url: u, method: GET } }",
    "[{ kind: sql }, { kind: postgres }, { kind: warehouse }, { kind: snowflake }, { kind: result }, { kind: script }]",
    "{ kind: teleport, anything: [1] }",
    "{ kind: noop, credential: c, timeout_seconds: 3, timeout_ms: 5, retry: { attempts: 2, initial_delay: 1, backoff: exponential } }",
  ],
  "texts for others (section 4.3)": [
    `{ kind: shell, cmds: ["docker ps --format '{{.Names}}'", "kubectl get -o go-template='{{range .items}}{{.metadata.name}}{{end}}'"] }`,
    `{ kind: python, code: "print(f'{{{x}}}') # {{ 1 + }} {% frobnicate %}" }`,
    `{ kind: http, url: u, json: { text: "Dear {{#user}}{{name}}{{/user}}", more: ["a {{ $x }}"] } }`,
    `{ kind: http, url: u, body: "{{> header}} and {{ else }}" }`,
    `{ kind: postgres, command: "select '{{' || x" }`,
    `{ kind: noop, input: { raw: "{% raw %}{{ .Go }}{% endraw %}" } }`,
    `{ kind: container, args: ["--format", "a {{.Names}}"], command: [sh, -c], env: [{ name: A, value: b }] }`,
    `{ kind: rhai, code: "{{.x}} y" }`,
  ],
  "expressions (sections 4.6 to 4.8)": [
    `{ kind: noop, input: { a: "{{ x if c else y }}", b: "{{ [1, 2][-1] }}", c: "{{ {'a': 1}.a }}", d: "{{ s[1:-1] }}", e: "{{ a ~ b // 2 % 3 }}" } }`,
    `{ kind: noop, input: { a: "{{ x is not defined }}", b: "{{ x is mapping }}", c: "{{ x is iterable }}", d: "{{ not a in b }}", e: "{{ a not in b }}" } }`,
    `{ kind: noop, input: { a: "{{ '1' | int }}", b: "{{ x | default(1, true) | tojson }}", c: "{{ x | items | first }}", d: "{{ x | b64encode | b64decode }}" } }`,
    `{ kind: noop, input: { a: "{{ now() }}", b: "{{ token('c') }}", c: "{% if a %}b{% elif c %}d{% else %}e{% endif %}", d: "{% for x in y %}{{ x }}{% endfor %}" } }`,
  ],
  "kinds (section 8)": [
    "{ kind: python, code_b64: cmVzdWx0ID0gMQ== }",
    "{ kind: python, script: { uri: a.py, source: { type: file } } }",
    "{ kind: python, code: x, libs: [numpy] }",
    "{ kind: http, endpoint: u, method: POST, form: { a: 1 } }",
    "{ kind: http, method: GET }",
    "{ kind: postgres, commands: [a, b], params: [1], pool: { size: 2 } }",
    "{ kind: duckdb, database: x.db, command: select 1 }",
    "{ kind: nats, operation: kv_get, bucket: b, key: k }",
    "{ kind: playbook, path: area/child, version: 2, return_step: end, payload: { a: 1 } }",
    "{ kind: playbook, path: ../child.yaml, mode: async }",
    "{ kind: mcp, server: s, method: tools/call, tool: t, arguments: '{}' }",
    "{ kind: artifact, action: get, result_ref: r }",
    "{ kind: artifact, args: { ref: { ref: r } } }",
    "{ kind: shell, cmd: [a, b], cwd: /tmp, env: { A: 1 }, timeout: 600 }",
    "{ kind: transfer, source: { type: http, url: u }, target: { type: postgres, auth: a, table: t, mapping: { a: b } } }",
    ...["container", "script job", "agent", "subscription", "rhai", "ducklake", "gcs", "provider"].map(
      (kind) => `{ kind: ${kind} }`,
    ),
  ],
  "forms of real documents": [
    "{ kind: container, image: i, args: [] }",
    "{ kind: http, url: u, timeout: { connect: 5, read: 30 } }",
    "{ kind: http, url: u, timeout: { connect: 5, read: '{{ t }}', total: 40 } }",
    "{ kind: http, url: u, retry: { max_attempts: 3, backoff: 2 } }",
    "{ kind: http, url: u, output_select: { id: $.id } }",
    "{ kind: http, url: u, output: { output_select: { id: $.id }, select: { id: $.id } } }",
    "{ kind: postgres, auth: a, script: { uri: ./a.sql, source: { type: file } } }",
    `{ kind: noop, set: { a: "{{ output.response.id }}" } }`,
    `{ kind: postgres, command: "insert into t values ($\${{ {'a': x if x else 0} | tojson }}$$::jsonb)" }`,
  ],
};

const DOCUMENTS: Readonly<Record<string, string>> = {
  "a leading slash in the path": "metadata: { name: n, path: /area/topic }\n",
  "keychain entries with `type` and `ref`": "keychain: [{ name: a, type: credential, ref: db }]\n",
  "a keychain entry that is a credential": "keychain: [{ name: a, credential: db }]\n",
  "service accounts in the keychain":
    "keychain:\n  - { name: a, kind: google_id_token, auth: x, service_account_secret: p, target_audience: t }\n  - { name: b, kind: google_id_token, service_account_credential: x, target_audience: t }\n",
  "unknown keys at every level": "tracing: { enabled: true }\nexecutor: { what: 1, spec: { ever: 2 } }\n",
  "a legacy spec": "spec: { a: 1 }\n",
};

const STEPS: readonly string[] = [
  "{ step: one, loop: { collection: '{{ x }}', element: e, mode: async }, tool: { kind: noop } }",
  "{ step: one, loop: { in: 3, spec: { mode: parallel, max_in_flight: '{{ n }}', on_error: { tolerate: 5% } } }, tool: { kind: noop } }",
  "{ step: one, tool: { kind: noop }, next: one }",
  "{ step: one, tool: { kind: noop }, next: [{ when: a, then: [one] }, { else: [one] }] }",
  "{ step: one, tool: { kind: noop }, next: [{ step: one, when: '{{ a }}', args: { x: 1 } }] }",
  "{ step: one, tool: { kind: noop }, when: false }",
  "{ step: one, tool: { kind: noop }, when: 'no' }",
  "{ step: one }",
  "{ step: one, tool: { kind: noop }, set: { ctx.a: 1, iter.b: 2, step.c: 3 }, vars: { d: 4 } }",
];

function accepted(text: string): void {
  const { diagnostics } = loadPlaybook(text, "test.yaml");
  assert.deepEqual(diagnostics.filter(({ severity }) => severity === "error").map(formatDiagnostic), []);
}

describe("documents that the language allows", () => {
  for (const [section, tools] of Object.entries(TOOLS)) {
    for (const tool of tools) {
      it(`${section}: ${tool}`, () => accepted(`${HEAD}workflow:\n  - step: one\n    tool: ${tool}\n`));
    }
  }
  for (const step of STEPS) it(`step ${step}`, () => accepted(`${HEAD}workflow:\n  - ${step}\n`));
  for (const [name, text] of Object.entries(DOCUMENTS)) {
    const head = text.startsWith("metadata") ? HEAD.replace(/metadata.*\n/, "") : HEAD;
    it(name, () => accepted(`${head}${text}workflow: [{ step: one, tool: { kind: noop } }]\n`));
  }

  const root = join(import.meta.dirname, "../../../..");
  for (const [folder, strict] of [
    ["playbooks", true],
    ["test/parity/playbooks", false],
    ["test/fixtures", false],
  ] as const) {
    it(`those in ${folder}${strict ? ", without a warning" : ""}`, () => {
      const files = documentsBelow(join(root, folder));
      assert.ok(files.length > 0);
      for (const file of files) {
        const { diagnostics } = loadCatalogDocument(readFileSync(file), file);
        const found = diagnostics.filter(({ severity }) => strict || severity === "error");
        assert.deepEqual(found.map(formatDiagnostic), []);
      }
    });
  }
});

function documentsBelow(folder: string): string[] {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const files = names.filter((name) => name.endsWith(".yaml") && !name.endsWith(".test.yaml"));
  return files
    .map((name) => join(folder, name))
    .filter((file) => /^kind: (Playbook|Agent|Mcp)$/m.test(readFileSync(file, "utf8")));
}
