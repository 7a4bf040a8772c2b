import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { loadCatalogDocument } from "../../src/language/load/catalog-document.ts";
import { createSecret } from "../../src/platform/crypto/secret.ts";
import { systemPlaybooks } from "../../src/roles/server/prepare-logins.ts";
import { flow, ROOT } from "./run-flow.ts";

const FOLDER = "playbooks/api_integration/idp";
const files = readdirSync(join(ROOT, FOLDER)).sort();
const documents = files.filter((name) => !name.endsWith(".test.yaml"));

test("every system playbook has tests beside it, and they pass", async () => {
  assert.deepEqual(
    files.filter((name) => name.endsWith(".test.yaml")),
    documents.map((name) => name.replace(/\.yaml$/, ".test.yaml")),
  );
  const exit = await flow(["test", FOLDER]);
  assert.equal(exit.code, 0, `${exit.stdout}\n${exit.stderr}`);
});

test("flow validate has nothing to say about them, warnings included", async () => {
  const exit = await flow(["validate", "--strict", ...documents.map((name) => `${FOLDER}/${name}`)]);
  assert.equal(exit.code, 0, exit.stdout);
});

test("all of them are registered, below the name of the provider", async () => {
  const supplied = await systemPlaybooks({ idpName: "acme", brokerUrl: undefined });
  assert.deepEqual(
    supplied.map(({ path }) => path).sort(),
    documents.map((name) => `api_integration/acme/${name.replace(/\.yaml$/, "")}`),
  );
  for (const { path, content } of supplied) {
    assert.equal(loadCatalogDocument(content, path).document?.path, path);
    assert.ok(!content.includes("api_integration/idp/"), path);
  }
});

test("where there is a broker, those that cache sessions do so", async () => {
  const cacheOf = async (brokerUrl: ReturnType<typeof createSecret> | undefined) =>
    (await systemPlaybooks({ idpName: "idp", brokerUrl })).flatMap(({ path, content }) => {
      const { cache } = (loadCatalogDocument(content, path).document?.payload["workload"] ?? {}) as { cache?: boolean };
      return cache === undefined ? [] : [`${path} ${cache}`];
    });
  const caching = ["login", "validate_session"].map((name) => `api_integration/idp/${name}`);
  assert.deepEqual(
    await cacheOf(createSecret("nats://one:4222")),
    caching.map((path) => `${path} true`),
  );
  assert.deepEqual(
    await cacheOf(undefined),
    caching.map((path) => `${path} false`),
  );
});
