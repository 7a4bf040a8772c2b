import assert from "node:assert/strict";
import { test } from "node:test";
import { schemaProblems } from "./check-manifests.ts";
import { type Manifest, readManifests } from "./manifests.ts";

const manifests = readManifests();

test("every manifest has the fields of its kind and no others", () => {
  assert.ok(manifests.length >= 14, `${manifests.length} manifests were found`);
  assert.deepEqual(schemaProblems(manifests), []);
});

/** The server's Deployment with one thing wrong. */
function spoiled(spoil: (deployment: Record<string, never>, container: Record<string, unknown>) => void): Manifest {
  const found = manifests.find(
    ({ document }) => document.kind === "Deployment" && document.metadata.name === "flow-server",
  );
  const document = structuredClone(found?.document) as unknown as Record<string, never> & {
    spec: { template: { spec: { containers: [Record<string, unknown>] } } };
  };
  spoil(document, document.spec.template.spec.containers[0]);
  return { place: "spoiled", document: document as unknown as Manifest["document"] };
}

test("a field that Kubernetes does not know is found, however deep it stands", () => {
  const [problem, ...others] = schemaProblems([
    spoiled((_, container) => Object.assign(container, { readynessProbe: {} })),
  ]);
  assert.match(problem ?? "", /^spoiled: .*'"readynessProbe"' does not exist in type 'Container'/);
  assert.deepEqual(others, []);
});

test("a value of another type is found", () => {
  const [problem] = schemaProblems([spoiled((_, container) => Object.assign(container, { args: "serve" }))]);
  assert.match(problem ?? "", /Type 'string' is not assignable to type 'string\[\]'.*\(at "args"/);
});

test("a field that is missing is found", () => {
  const [problem] = schemaProblems([spoiled((_, container) => delete container["name"])]);
  assert.match(problem ?? "", /Property 'name' is missing/);
});

test("a kind that this check does not know is an error, not a pass", () => {
  const [problem] = schemaProblems([
    { place: "other", document: { apiVersion: "apps/v1beta1", kind: "Deployment", metadata: { name: "old" } } },
  ]);
  assert.match(problem ?? "", /^other: Property 'apps\/v1beta1 Deployment' does not exist/);
});
