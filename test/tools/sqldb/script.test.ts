import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { JsonObject } from "../../../src/schema/words/json.ts";
import { createToolRegistry } from "../../../src/tools/registry.ts";
import { startHttpServer } from "../../support/servers/http-server.ts";
import { toolCall } from "../../support/service/tool-call.ts";

const SQL = "create table t (n int); insert into t values (7); select n from t";

/** Runs a duckdb task with this `script`; `sqldb` and `warehouse` have the same wrapper. */
async function run(script: JsonObject, scriptFiles: "none" | { folder: string } = "none") {
  const settings = {
    allowPrivate: "all",
    store: { load: () => Promise.resolve(null) },
    python: { scriptFiles },
  } as const;
  const registry = createToolRegistry(settings);
  try {
    const tool = await registry.get("duckdb");
    return await tool.run(toolCall({ script }));
  } finally {
    await registry.close();
  }
}

test("SQL comes from a file, from an address, or stands in the script", async () => {
  const folder = await mkdtemp(join(tmpdir(), "flow-sql-"));
  const server = await startHttpServer((_request, response) => response.end(SQL));
  try {
    await writeFile(join(folder, "t.sql"), SQL);
    const sha256 = createHash("sha256").update(SQL).digest("hex");
    for (const script of [
      { uri: "t.sql", source: { type: "file" } },
      { uri: "t.sql", sha256 },
      { source: { type: "inline", code: SQL } },
      { uri: `${server.origin}/t.sql` },
    ]) {
      const { data, error } = await run(script, { folder });
      assert.deepEqual((data as JsonObject | undefined)?.["rows"], [{ n: 7 }], error?.message);
    }
  } finally {
    await Promise.all([rm(folder, { recursive: true, force: true }), server.close()]);
  }
});

for (const [what, script, message] of [
  [
    "a file where none is read",
    { uri: "t.sql" },
    /The script "t.sql" of the duckdb task is a file, and this worker reads none/,
  ],
  ["a bucket", { uri: "s3://b/t.sql" }, /The duckdb task's script comes from "s3"/],
  ["nothing", {}, /no "uri"/],
  ["a wrong type", { uri: 1 }, /key "script": expects the path of a file/],
] as const) {
  test(`a script from ${what} says why it cannot be run`, async () => {
    const { error } = await run(script);
    assert.equal(error?.kind, "configuration");
    assert.match(error?.message ?? "", message);
  });
}
