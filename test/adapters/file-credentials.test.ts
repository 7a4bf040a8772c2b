import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createFileCredentials } from "../../src/adapters/file-credentials.ts";
import { FlowError } from "../../src/schema/words/errors.ts";

const CANARY = "canary-8d1f";

function write(t: TestContext, content: unknown): string {
  const folder = mkdtempSync(join(tmpdir(), "flow-credentials-test-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "credentials.json");
  writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
  return file;
}

test("a credential is found in the file by its name", async (t) => {
  const file = write(t, { pg: { type: "sqldb", data: { db_host: "h" }, schema: "ignored" } });
  const source = createFileCredentials(file, {});
  assert.deepEqual(await source.find("pg"), { name: "pg", type: "sqldb", data: { db_host: "h" } });
  assert.equal(await source.find("other"), undefined);
  assert.equal(await source.find("constructor"), undefined);
});

test("without a file only the environment has credentials", async () => {
  const source = createFileCredentials(undefined, { FLOW_CREDENTIAL_API: '{"type":"bearer","data":{"token":"t"}}' });
  assert.deepEqual(await source.find("api"), { name: "api", type: "bearer", data: { token: "t" } });
  assert.equal(await source.find("pg"), undefined);
});

test("the environment wins over the file, other characters of a name being underscores there", async (t) => {
  const file = write(t, { "pg-demo.eu": { type: "sqldb", data: { db_host: "file" } } });
  const text = '{"type":"sqldb","data":{"db_host":"environment"}}';
  const found = await createFileCredentials(file, { FLOW_CREDENTIAL_PG_DEMO_EU: text }).find("pg-demo.eu");
  assert.deepEqual(found?.data, { db_host: "environment" });
  const empty = await createFileCredentials(file, { FLOW_CREDENTIAL_PG_DEMO_EU: " " }).find("pg-demo.eu");
  assert.deepEqual(empty?.data, { db_host: "file" }, "An empty variable counts as one that is not set");
});

test("a file that changes is not read again, and an unused file is not read at all", async (t) => {
  createFileCredentials("/nowhere/credentials.json", {});
  const file = write(t, { pg: { type: "sqldb", data: {} } });
  const source = createFileCredentials(file, {});
  await source.find("pg");
  writeFileSync(file, "broken");
  assert.ok(await source.find("pg"));
});

test("the error for an unreadable file names the file", async () => {
  const work = createFileCredentials("/nowhere/credentials.json", {}).find("pg");
  await assert.rejects(
    work,
    (error) =>
      error instanceof FlowError &&
      error.code === "FILE_UNREADABLE" &&
      error.message.includes("/nowhere/credentials.json"),
  );
});

for (const [what, content, message] of [
  ["is not JSON", `{"pg": ${CANARY}`, /credentials\.json is not JSON$/],
  ["is a list", [CANARY], /must hold one JSON object: \{name: \{type, data\}\}$/],
  ["is a text", JSON.stringify(CANARY), /must hold one JSON object/],
  ["has a text as credential", { pg: CANARY }, /Credential 'pg' in .*: it is no map: a credential is \{type, data\}$/],
  ["has a list as credential", { pg: [CANARY] }, /Credential 'pg' in .*/],
  ["has null as credential", { pg: null }, /Credential 'pg' in .*/],
  [
    "has a credential without type",
    { pg: { data: { token: CANARY } } },
    /Credential 'pg' in .*: 'type' is missing: a credential is \{type, data\}$/,
  ],
  [
    "has a credential without data",
    { pg: { type: "bearer", token: CANARY } },
    /Credential 'pg' in .*: 'data' is missing/,
  ],
  ["has a type that is no text", { pg: { type: [CANARY], data: {} } }, /'type' must be a text: sqldb, /],
  [
    "has data that is a text",
    { pg: { type: "bearer", data: CANARY } },
    /'data' must be a map of the credential's fields$/,
  ],
  [
    "has data that is a list",
    { pg: { type: "bearer", data: [CANARY] } },
    /'data' must be a map of the credential's fields$/,
  ],
] as const) {
  test(`a file that ${what} is refused without showing a value`, async (t) => {
    const work = createFileCredentials(write(t, content), {}).find("pg");
    await assert.rejects(work, (error) => {
      assert.ok(error instanceof FlowError);
      assert.equal(error.code, "INVALID_SETTING");
      assert.match(error.message, message);
      assert.ok(!`${error.message} ${String(error.cause ?? "")} ${error.stack}`.includes(CANARY), error.message);
      return true;
    });
  });
}

for (const text of [CANARY, `"${CANARY}"`, `{"type":"bearer","data":"${CANARY}"}`, `{"data":{"token":"${CANARY}"}}`]) {
  test(`a variable that holds ${text.replace(CANARY, "…")} is refused by its name without showing a value`, async () => {
    await assert.rejects(createFileCredentials(undefined, { FLOW_CREDENTIAL_PG: text }).find("pg"), (error) => {
      assert.ok(error instanceof FlowError && error.code === "INVALID_SETTING");
      assert.match(error.message, /FLOW_CREDENTIAL_PG/);
      assert.ok(!error.message.includes(CANARY), error.message);
      return true;
    });
  });
}
