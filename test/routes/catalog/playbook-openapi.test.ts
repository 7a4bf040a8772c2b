import assert from "node:assert/strict";
import { before, test } from "node:test";
import { openApi } from "../../support/service/api.ts";
import { ONE_STEP, workWith } from "../../support/service/api-work.ts";

/* OpenAPI of one playbook: what other clients need to start it. */

const api = await openApi();
const work = workWith(api);
const INPUTS = `inputs:
  day: { type: string, format: date, description: Which day, required: true }
  detail: { type: string, enum: [total, rows], default: total }
  signature: { type: string, secret: true }
`;

interface Document {
  openapi: string;
  info: object;
  paths: Record<string, { post: { requestBody: { content: Record<string, { schema: Schema }> } } }>;
}
interface Schema {
  properties: Record<string, unknown>;
  required: string[];
}

async function documentOf(address: string): Promise<{ document: Document; schema: Schema }> {
  const { status, body } = await work.get(`/api/catalog/openapi/${address}`);
  assert.equal(status, 200, JSON.stringify(body));
  const document = body as unknown as Document;
  const schema = document.paths["/api/execute"]?.post.requestBody.content["application/json"]?.schema;
  assert.ok(schema !== undefined);
  return { document, schema };
}

before(async () => {
  const content = (path: string, more: string, metadata = "") =>
    `apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: x, path: ${path}, description: Reports${metadata} }\n${more}workflow:\n${ONE_STEP}`;
  for (const text of [
    content("described/declared", INPUTS),
    content("described/plain", "workload: { who: world, at: '{{ now() }}' }\n"),
    content("described/agent", INPUTS, ", agent: true"),
    content("described/agent", "", ", agent: true"),
  ])
    assert.equal((await work.post("/api/catalog/register", { content: text })).status, 200);
});

test("declared inputs stand in it as they are checked: all that there are, those that are required, no secret's default", async () => {
  const { document, schema } = await documentOf("described/declared");
  assert.deepEqual(
    [document.openapi, document.info, Object.keys(document.paths)],
    ["3.1.0", { title: "described/declared", version: "1", description: "Reports" }, ["/api/execute"]],
  );
  assert.deepEqual(schema.required, ["path", "workload"]);
  assert.deepEqual(
    [schema.properties["path"], schema.properties["workload"], Object.hasOwn(schema.properties, "catalog_id")],
    [
      { const: "described/declared" },
      {
        type: "object",
        properties: {
          day: { type: "string", format: "date", description: "Which day" },
          detail: { type: "string", enum: ["total", "rows"], default: "total" },
          signature: { type: "string", writeOnly: true },
        },
        required: ["day"],
        additionalProperties: false,
      },
      false,
    ],
  );
});

test("without declared inputs the defaults say what is known, and others may be given", async () => {
  const { schema } = await documentOf("described/plain");
  assert.deepEqual(schema.required, ["path"]);
  assert.deepEqual(schema.properties["workload"], {
    type: "object",
    properties: { who: { type: "string", default: "world" }, at: { description: "Worked out when left out." } },
    additionalProperties: true,
  });
});

test("a version is asked for, an agent is started as one, and what cannot be started has none", async () => {
  const newest = await documentOf("described/agent");
  assert.deepEqual(newest.schema.properties["resource_kind"], { const: "agent" });
  assert.deepEqual(newest.schema.required, ["path", "resource_kind"]);
  const first = await documentOf("described/agent?version=1");
  assert.deepEqual(first.schema.properties["version"], { const: "1" });
  assert.deepEqual(first.schema.required, ["path", "resource_kind", "workload"]);
  const server =
    "apiVersion: flow/v2\nkind: Mcp\nmetadata: { name: s, path: mcp/s }\nspec: { endpoint: 'https://mcp.example/mcp' }\n";
  assert.equal((await work.post("/api/catalog/register", { content: server })).status, 200);
  assert.equal((await work.get("/api/catalog/openapi/mcp/s")).status, 422);
  assert.equal((await work.get("/api/catalog/openapi/described/none")).status, 404);
  assert.equal((await work.get("/api/catalog/openapi/described/agent?version=9")).status, 404);
});

test("what starts by it is what it says", async () => {
  const { schema } = await documentOf("described/declared");
  const { const: path } = schema.properties["path"] as { const: string };
  assert.equal((await work.post("/api/execute", { path, workload: { day: "2026-01-30" } })).status, 200);
  assert.equal((await work.post("/api/execute", { path, workload: { day: "soon" } })).status, 422);
});
