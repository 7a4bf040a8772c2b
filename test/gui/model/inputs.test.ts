import assert from "node:assert/strict";
import { test } from "node:test";
import { contentOf, toolsOf } from "../../../gui/src/agents/mcp-tools.ts";
import { lineDiff } from "../../../gui/src/catalog/diff/line-diff.ts";
import { readInputs, textOf } from "../../../gui/src/catalog/run/input-values.ts";
import { fieldsOf, fieldsOfSchema, inTextOrder } from "../../../gui/src/catalog/run/inputs.ts";
import { systemPaths } from "../../../gui/src/catalog/run/system-paths.ts";
import { type DataField, dataOf, startFields } from "../../../gui/src/credentials/data-fields.ts";
import { readMap } from "../../../gui/src/parts/read-yaml.ts";
import { CREDENTIAL_TYPES, credentialFields, credentialProblems } from "../../../src/schema/rules/credential-types.ts";
import type { Json } from "../../../src/schema/words/json.ts";

const WORKLOAD = {
  text: "a",
  count: 2,
  yes: true,
  none: null,
  list: [1, "b"],
  map: { c: { d: 1 } },
  access_token: null,
};

test("what a form begins with comes back as the same values and types", async () => {
  const fields = fieldsOf({ workload: WORKLOAD });
  const texts = Object.fromEntries(fields.map((field) => [field.name, textOf(field, field.initial)]));
  assert.deepEqual(await readInputs(fields, texts), { values: WORKLOAD, problems: {} });
});

test("values that are written as something else than they look keep their types", async () => {
  const [field] = fieldsOf({ workload: { any: null } });
  assert.ok(field !== undefined);
  for (const value of [
    "5",
    "true",
    "null",
    "- a",
    "a: b",
    "{x",
    "plain",
    "with blank",
    "",
    "yes",
    5,
    true,
    [1],
    { a: "{" },
  ] as Json[]) {
    const { values, problems } = await readInputs([field], { any: textOf(field, value) });
    assert.deepEqual([values["any"], problems], [value, {}], JSON.stringify(value));
  }
});

test("lists and maps are read as YAML and as JSON, and templates as they are", async () => {
  const fields = fieldsOf({ workload: { list: [], map: {}, count: 1 } });
  const { values } = await readInputs(fields, { list: "- a\n- 2", map: "a:\n  b: [1, 2]", count: "{{ env.X }}" });
  assert.deepEqual(values, { list: ["a", 2], map: { a: { b: [1, 2] } }, count: "{{ env.X }}" });
  assert.deepEqual(await readMap("a: 1"), { a: 1 });
  assert.deepEqual(await readMap(" "), {});
  await assert.rejects(readMap("- a"), /must be a map/);
});

test("each field shows its error: not a number, invalid YAML, missing, out of range, not a choice", async () => {
  const fields = fieldsOfSchema({
    type: "object",
    required: ["need", "pick"],
    properties: {
      need: { type: "string" },
      pick: { enum: ["a", 2] },
      whole: { type: "integer", minimum: 3 },
      list: { type: "array", items: { type: "string" } },
      maybe: { type: "boolean" },
    },
  });
  const { values, problems } = await readInputs(fields, { whole: "2", list: "[1]" });
  assert.deepEqual(values, { whole: 2, list: [1] });
  assert.equal(problems["need"], "is required");
  assert.equal(problems["pick"], "is required");
  assert.match(String(problems["whole"]), /3 at least/);
  assert.match(String(problems["list"]), /must be string/);
  const wrong = await readInputs(fields, { need: "x", pick: "2", whole: "1.5x", list: "a: [", maybe: "" });
  assert.deepEqual(Object.keys(wrong.problems).sort(), ["list", "whole"]);
  assert.deepEqual([wrong.values["need"], wrong.values["pick"]], ["x", 2]);
});

test("an agent's own description of its inputs counts before the types of its defaults", () => {
  const fields = fieldsOf({
    metadata: {
      exposes_as_mcp: {
        input_schema: { properties: { node: { type: "string", description: "A node." } }, required: ["node"] },
      },
    },
    workload: { more: 1, node: "n7" },
  });
  assert.deepEqual(
    fields.map(({ name, required, initial }) => [name, required, initial]),
    [
      ["node", true, "n7"],
      ["more", false, 1],
    ],
  );
});

test("fields stand in the order of the text, and names that look like patterns break nothing", () => {
  const fields = fieldsOf({ workload: { b: 1, "a.*(": 2, z: 3 } });
  const text = 'metadata: {b: 1}\nworkload:\n  z: 3\n  "a.*(": 2\n  b: 1\n';
  assert.deepEqual(
    inTextOrder(fields, text).map(({ name }) => name),
    ["z", "a.*(", "b"],
  );
});

test("documents and schemas of any shape give a form", () => {
  for (const odd of [{}, { workload: 1 }, { workload: [] }, { metadata: null, workload: null }] as Record<
    string,
    unknown
  >[]) {
    assert.deepEqual(fieldsOf(odd), []);
  }
  assert.deepEqual(fieldsOfSchema({ properties: [] }), []);
  const odd = '{"properties":{"__proto__":{"type":"string"},"b":7,"c":{"type":["null","number"],"enum":[]}}}';
  const [proto, one, two] = fieldsOfSchema(JSON.parse(odd) as Record<string, unknown>);
  assert.deepEqual([proto?.name, proto?.kind], ["__proto__", "text"]);
  assert.deepEqual([one?.kind, two?.kind], ["any", "number"]);
});

test("a difference of texts names what was added and what was removed, also of texts that are too long to compare", () => {
  const told = (before: string, after: string) =>
    lineDiff(before, after)
      .filter(({ kind }) => kind !== "same")
      .map(({ kind, text }) => `${kind === "added" ? "+" : "-"}${text}`);
  assert.deepEqual(told("a\nb\nc", "a\nx\nc\nd"), ["-b", "+x", "+d"]);
  assert.deepEqual(told("a", "a"), []);
  const long = (mark: string) => Array.from({ length: 5_000 }, (_, index) => `${mark}${index}`).join("\n");
  assert.equal(told(long("a"), long("b")).length, 10_000);
});

test("the fields of a credential are those of its type, and what they come to is what the server takes", () => {
  for (const type of CREDENTIAL_TYPES) {
    const fields = startFields(type, []).map(
      (field): DataField => ({ ...field, text: field.type === "integer" ? "5" : "x" }),
    );
    assert.deepEqual(credentialProblems(type, dataOf(fields)), [], type);
    const missing = credentialFields(type).filter(({ required }) => required);
    assert.equal(credentialProblems(type, dataOf(startFields(type, []))).length, missing.length, type);
  }
  const more: DataField = { id: "1", name: " ", type: "string", required: false, isFixed: false, text: "secret-value" };
  assert.throws(
    () => dataOf([more]),
    (error: Error) => !error.message.includes("secret-value"),
  );
  assert.throws(() => dataOf([{ ...more, name: "n", type: "number" }]), /n must be a number/);
});

test("tools and answers are found wherever in a result an agent puts them", () => {
  const tool = { name: "<b>x</b>", description: 7, inputSchema: [], annotations: { readOnlyHint: true } };
  const [found] = toolsOf({ call: { result: { tools: [tool, "no"] } } });
  assert.deepEqual(found, {
    name: "<b>x</b>",
    title: "",
    description: "",
    inputSchema: {},
    hints: ["changes nothing"],
    raw: tool,
  });
  assert.deepEqual(toolsOf({ tools: "none" }), []);
  const content = [
    { type: "text", text: "a" },
    { type: "image", data: "AAAA", mimeType: "image/png" },
    { type: "resource", resource: { uri: "x:y" } },
  ];
  const { isError, pieces } = contentOf({ result: { content, isError: true } }) ?? { isError: false, pieces: [] };
  assert.equal(isError, true);
  assert.deepEqual(
    pieces.map(({ text }) => text.split(";")[0]),
    ["a", "image/png, 3 bytes", "x:y"],
  );
  assert.equal(contentOf({ a: 1 }), undefined);
});

test("the system playbooks that a document calls are found wherever the task stands, and no others", () => {
  const task = (path: Json, kind = "playbook") => ({ kind, path });
  const document = {
    metadata: { path: "team/one" },
    workflow: [
      { step: "one", tool: task("/api_integration/idp/login") },
      { step: "two", tool: [{ named: task("system/{{ name }}") }, { other: task("team/two") }] },
      { step: "three", tool: task("systems/login") },
      { step: "four", tool: task("system/read", "http") },
    ],
    workbook: [
      { name: "w", tool: task("system/purge") },
      { name: "x", tool: task(null) },
    ],
  };
  assert.deepEqual(systemPaths(document), ["api_integration/idp/login", "system/{{ name }}", "system/purge"]);
});

test("declared inputs are fields with their types, in the document's order; a default that is a template is left to the start", async () => {
  const payload = {
    inputs: {
      day: { type: "string", format: "date", required: true },
      mode: { enum: ["full", "delta"], default: "delta", description: "How much." },
      count: { type: "integer", minimum: 1 },
      token: { type: "string", secret: true },
      name: { type: "string", default: "{{ workload.mode }}-{{ day }}" },
    },
    workload: { region: "eu" },
  };
  const fields = inTextOrder(
    fieldsOf(payload),
    "inputs:\n  day:\n  mode:\n  count:\n  token:\n  name:\nworkload:\n  region:\n",
  );
  assert.deepEqual(
    fields.map(({ name, kind, required, secret, initial }) => [name, kind, required, secret, initial]),
    [
      ["day", "text", true, false, undefined],
      ["mode", "any", false, false, "delta"],
      ["count", "number", false, false, undefined],
      ["token", "text", false, true, undefined],
      ["name", "text", false, false, "{{ workload.mode }}-{{ day }}"],
      ["region", "text", false, false, "eu"],
    ],
  );
  const texts = Object.fromEntries(fields.map((field) => [field.name, textOf(field, field.initial)]));
  assert.deepEqual(await readInputs(fields, texts), {
    values: { mode: "delta", region: "eu" },
    problems: { day: "is required" },
  });
  const { values, problems } = await readInputs(fields, { ...texts, day: "2026-01-31", count: "0", name: "x" });
  assert.deepEqual([values["day"], values["name"], problems], ["2026-01-31", "x", { count: "must be 1 at least" }]);
});
