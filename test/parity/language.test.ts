import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { isJsonObject, type Json, type JsonObject } from "../../src/schema/words/json.ts";
import { ROOT, startExampleApi } from "../examples/run-flow.ts";
import { createTestDatabase } from "../support/database/postgres.ts";
import { folderWith } from "../support/service/cli-process.ts";
import { LANGUAGE } from "./language-scenarios.ts";
import { loopFailuresDocument } from "./loop-failures.ts";
import { compare } from "./support/compare.ts";
import { startParityService } from "./support/service-run.ts";
import { formsDocument, limitDocument } from "./tool-forms.ts";

/* The shapes of the language, each on both runtimes. */

const FOLDER = join(ROOT, "test/parity/playbooks");

test("every feature of the language gives the same result on both runtimes", async (t) => {
  const { url: _url, ...data } = await createTestDatabase();
  const api = await startExampleApi();
  t.after(() => api.close());
  const credentials = {
    parity_db: { type: "sqldb", data },
    parity_token: { type: "bearer", data: { token: "a-secret-token-of-parity" } },
  };
  const folder = await folderWith(t, {});
  const credentialsFile = join(folder, "credentials.json");
  await writeFile(credentialsFile, JSON.stringify(credentials), { mode: 0o600 });
  const surroundings = { folder: FOLDER, credentialsFile, env: { PARITY_STAGE: "test" } };
  const service = await startParityService(t, surroundings);
  for (const name of readdirSync(FOLDER)) await service.register(await readFile(join(FOLDER, name), "utf8"));
  for (const scenario of LANGUAGE) {
    const workload = { base_url: api.origin, ...scenario.workload };
    await t.test(scenario.name, async () => void (await compare({ ...scenario, workload }, surroundings, service)));
  }
  const generated = [formsDocument(), limitDocument(), { ...loopFailuresDocument(), shown: {} }];
  const files = generated.map(({ content }, index) => [`${index}.yaml`, content] as const);
  const forms = { ...surroundings, folder: await folderWith(t, Object.fromEntries(files)) };
  for (const { path, content, expected, shown } of generated) {
    await t.test(path, async () => {
      await service.register(content);
      const outcome = await compare({ name: path, path, order: "parts", ends: "COMPLETED" }, forms, service);
      assert.deepEqual(JSON.parse(outcome.result), expected);
      for (const [step, fields] of Object.entries(shown)) {
        if (fields === null) continue;
        const seen = JSON.parse(outcome.shown[step] ?? "null") as JsonObject;
        // The names are the same on both sides of the limit; of a reference alone more is shown than is expected here.
        if (!("kind" in (fields as object))) assert.deepEqual(Object.keys(seen), Object.keys(fields), step);
        assert.deepEqual(filled(fields, seen), seen, step);
      }
    });
  }
});

/** What is expected, with what is seen besides. */
function filled(expected: Json, seen: Json): Json {
  if (!isJsonObject(expected) || !isJsonObject(seen)) return expected;
  const fields = Object.entries(expected).map(([key, value]) => [key, filled(value, seen[key] ?? null)]);
  return { ...seen, ...Object.fromEntries(fields) };
}

test("each document in this folder is run by one of these tests", () => {
  const documents = readdirSync(FOLDER).map((name) => `parity/${name.replace(/\.yaml$/, "")}`);
  const run = new Set(LANGUAGE.map(({ path }) => path));
  assert.deepEqual(
    documents.filter((path) => !run.has(path)),
    [],
  );
});
