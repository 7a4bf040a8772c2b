import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { parseEnv } from "node:util";
import { parseAllDocuments } from "yaml";
import { listGivenCredentials } from "../../src/adapters/given-credentials.ts";
import { packagePath } from "../../src/platform/system/package-file.ts";
import { readCredentialBody } from "../../src/schema/api/credentials.ts";
import { credentialPlaybooks } from "../../src/schema/rules/credential-playbooks.ts";
import { credentialProblems } from "../../src/schema/rules/credential-types.ts";

/** What the examples would register. */
async function registered(variables: Readonly<Record<string, string | undefined>>): Promise<string[]> {
  const given = await listGivenCredentials(undefined, variables);
  return given.map(({ place, body }) => {
    const { name, type, data, schema, meta } = readCredentialBody(body);
    // In a new installation no playbook could use it otherwise.
    assert.ok(credentialPlaybooks(meta ?? null, "restricted").patterns.length > 0, place);
    assert.deepEqual(credentialProblems(type, data, schema ?? {}), [], place);
    return `${name} ${type}`;
  });
}

test("the credentials in the example for compose are such that a server takes them", async () => {
  const variables = parseEnv(readFileSync(packagePath("deploy/credentials.env.example"), "utf8"));
  assert.deepEqual((await registered(variables)).sort(), ["nats_credential broker", "pg_demo sqldb"]);
});

test("the credentials in the example for Kubernetes are such that a server takes them", async () => {
  const text = readFileSync(packagePath("deploy/kubernetes/base/secret.example.yaml"), "utf8");
  const documents = parseAllDocuments(text).map((document) => document.toJS() as SecretDocument);
  const secret = documents.find(({ metadata }) => metadata.name === "flow-credentials");
  assert.deepEqual(await registered(secret?.stringData ?? {}), [
    "pg_k8s sqldb",
    "nats_k8s broker",
    "clickhouse_k8s analytics_db",
  ]);
});

interface SecretDocument {
  metadata: { name: string };
  stringData?: Record<string, string>;
}
