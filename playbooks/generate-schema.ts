import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { toJsonSchema } from "@valibot/to-json-schema";
import { ArcBody, NextForms, PlaybookDocument, StepBody } from "../src/schema/documents/document.ts";
import { PolicyRule, ResultStorage, RuleAction, TaskBody, ToolForms } from "../src/schema/documents/document-task.ts";
import { KIND_ALIASES } from "../src/schema/words/playbook.ts";
import { KIND_KEYS } from "../src/schema/words/task-kinds.ts";

/** Path of the generated file below the root of the project. */
export const SCHEMA_FILE = "playbooks/playbook.schema.json";

/**
 * The JSON Schema of playbook documents, for editors that complete and validate (draft 7, which all of them know). It is
 * generated from the schema that the loader uses, so that the two never differ. It accepts every form that the loader
 * accepts; what only the loader can tell (an arc to a missing step) is not in it.
 */
export function playbookJsonSchema(): Record<string, unknown> {
  const definitions = { StepBody, ToolForms, TaskBody, PolicyRule, RuleAction, ResultStorage, NextForms, ArcBody };
  const schema = toJsonSchema(PlaybookDocument, { definitions, errorMode: "throw" }) as unknown as JsonSchema;
  const task = schema.$defs?.["TaskBody"];
  if (task === undefined) throw new Error("the generated schema has no definition TaskBody");
  task["allOf"] = Object.keys(KIND_KEYS).map(keysOfKind);
  const { $schema, ...rest } = simplified(schema) as JsonSchema;
  return { $schema, title: "Playbook", description: "A playbook of flow: steps, tools and arcs.", ...rest };
}

type JsonSchema = Record<string, unknown> & { $defs?: Record<string, Record<string, unknown>> };

/**
 * The same schema in fewer words: nested choices become one, choices between plain types a list of types, and what
 * restricts nothing goes. It is a third shorter, and editors show it better.
 */
function simplified(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(simplified);
  if (typeof schema !== "object" || schema === null) return schema;
  const plain = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, simplified(value)]));
  if (isEmpty(plain["additionalProperties"])) delete plain["additionalProperties"];
  if (JSON.stringify(plain["propertyNames"]) === '{"type":"string"}') delete plain["propertyNames"];
  if (Array.isArray(plain["required"]) && plain["required"].length === 0) delete plain["required"];
  if (!Array.isArray(plain["anyOf"])) return plain;
  const { anyOf, ...others } = plain;
  const choices = (anyOf as Record<string, unknown>[]).flatMap((choice) => {
    const only = Object.keys(choice).length === 1;
    return only && Array.isArray(choice["anyOf"]) ? (choice["anyOf"] as Record<string, unknown>[]) : [choice];
  });
  if (choices.some(isEmpty)) return others;
  const types = choices.flatMap((choice) => (Object.keys(choice).length === 1 ? (choice["type"] ?? []) : []));
  return types.length >= choices.length ? { ...others, type: [...new Set(types)] } : { ...others, anyOf: choices };
}

function isEmpty(schema: unknown): boolean {
  return typeof schema === "object" && schema !== null && Object.keys(schema).length === 0;
}

/** Offers the keys of a kind where the task is of that kind, under any of its names. */
function keysOfKind(kind: string): Record<string, unknown> {
  const names = [kind, ...Object.keys(KIND_ALIASES).filter((alias) => KIND_ALIASES[alias] === kind)];
  const properties = Object.entries(KIND_KEYS[kind] ?? {}).map(([key, description]) => [key, { description }]);
  return {
    if: { properties: { kind: { enum: names } }, required: ["kind"] },
    then: { properties: Object.fromEntries(properties) },
  };
}

/** The text of the generated file. */
export function playbookJsonSchemaText(): string {
  return `${JSON.stringify(playbookJsonSchema(), null, 2)}\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  // Compiled, this file is in a folder of its own below the root: dist/playbooks.
  writeFileSync(fileURLToPath(new URL(`../../${SCHEMA_FILE}`, import.meta.url)), playbookJsonSchemaText());
}
