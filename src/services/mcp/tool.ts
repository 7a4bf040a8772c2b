import { createHash } from "node:crypto";
import { inputsOfDocument, schemaOfDefault, schemaOfInputs } from "../../schema/inputs/declared-inputs.ts";
import { cleanAnySchema, cleanObjectSchema } from "../../schema/rules/clean-json-schema.ts";
import { defined } from "../../schema/words/defined.ts";
import { isJsonObject, type JsonObject, own } from "../../schema/words/json.ts";

/** An agent as a tool of a model. */
export interface AgentTool {
  name: string;
  /** What people read. */
  title: string;
  /** What the model reads. */
  description: string;
  /** JSON Schema of the inputs, always of an object. */
  inputSchema: JsonObject;
  /** True when the author declared the schema: then inputs are held to it before anything is started. */
  isDeclared: boolean;
  /** JSON Schema of the result, where the author declared one. */
  resultSchema?: JsonObject;
  /** Hints of the author's for clients: `readOnlyHint` and the like. */
  annotations?: Record<string, boolean>;
  path: string;
  /** The version that a call runs. */
  catalogId: string;
  /** How many its workflow has. */
  steps: number;
}

/** What a tool is made of. */
export interface AgentEntry {
  catalogId: string;
  path: string;
  metadata: JsonObject;
  payload: JsonObject;
}

/** Longest description of a tool: models read all of them with every question. */
const DESCRIPTION_CHARS_MAX = 2_000;

/**
 * The tool that an agent is offered as; undefined if it is not offered: `metadata.exposes_as_mcp: false`, or not visible in
 * terminals. `exposes_as_mcp` may also be a map: `title`, `description`, `input_schema`, `output_schema`, `annotations`.
 */
export function agentTool({ catalogId, path, metadata, payload }: AgentEntry): AgentTool | undefined {
  const exposed = own(metadata, "exposes_as_mcp");
  if (exposed === false || !isVisible(metadata)) return undefined;
  const declaration = isJsonObject(exposed) ? exposed : {};
  const declared = cleanObjectSchema(own(declaration, "input_schema"));
  const resultSchema = cleanAnySchema(own(declaration, "output_schema"));
  const annotations = annotationsOf(own(declaration, "annotations"));
  const described = textOf(own(declaration, "description")) ?? textOf(own(metadata, "description"));
  return {
    name: agentToolName(path),
    title: textOf(own(declaration, "title")) ?? textOf(own(metadata, "name")) ?? path,
    description: (described ?? `Runs the agent '${path}' and gives its result.`).slice(0, DESCRIPTION_CHARS_MAX),
    inputSchema: declared ?? inputsOf(payload) ?? schemaOfDefaults(own(payload, "workload")),
    isDeclared: declared !== undefined,
    ...defined({ resultSchema, annotations }),
    path,
    catalogId,
    steps: stepsOf(payload),
  };
}

function stepsOf(payload: JsonObject): number {
  const workflow = own(payload, "workflow");
  return Array.isArray(workflow) ? workflow.length : 0;
}

/** `metadata.terminal.visible`, true by default (interface specification, Catalog). */
function isVisible(metadata: JsonObject): boolean {
  const terminal = own(metadata, "terminal");
  return !isJsonObject(terminal) || own(terminal, "visible") !== false;
}

/** Inputs, typed by their defaults. All are optional, and others are accepted: a playbook may read any input. */
function schemaOfDefaults(workload: unknown): JsonObject {
  const properties = isJsonObject(workload)
    ? Object.fromEntries(Object.entries(workload).map(([name, value]) => [name, schemaOfDefault(value)]))
    : {};
  return { type: "object", properties };
}

/** The declared inputs, as far as clients can compile them. A start checks all of it. */
function inputsOf(payload: JsonObject): JsonObject | undefined {
  const declared = inputsOfDocument(payload);
  return declared === undefined ? undefined : cleanObjectSchema(schemaOfInputs(declared.inputs, declared.defaults));
}

const ANNOTATIONS = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] as const;

function annotationsOf(value: unknown): Record<string, boolean> | undefined {
  if (!isJsonObject(value)) return undefined;
  const given = ANNOTATIONS.flatMap((name) => {
    const declaration = own(value, name);
    return typeof declaration === "boolean" ? [[name, declaration] as const] : [];
  });
  return given.length === 0 ? undefined : Object.fromEntries(given);
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value : undefined;
}

/** Longest name of a tool: what the strictest of the known hosts hand on to their models. */
export const TOOL_NAME_MAX = 64;

/** Between two segments of a path. */
const SLASH = "__";
/** Before the digest of a path that its name cannot say. A name that says its path never has three underscores in a row. */
const DIGEST = "___";
/** Characters of the digest, 64 bits: a second path with the same name cannot be found. */
const DIGEST_CHARS = 16;

/**
 * The tool name of the agent at a catalog path: `ops__restart-pod` for `ops/restart-pod`. It depends on the path alone, so that
 * it is stable, and no two paths share a name. A path that cannot be recovered from such a name (other characters, underscores
 * beside slashes, too long) gets as much of it as fits, and a digest: `ops__on_call___2f0c9ab1d3e45f67`.
 */
export function agentToolName(path: string): string {
  const plain = path.replaceAll("/", SLASH);
  if (plain.length <= TOOL_NAME_MAX && path.split("/").every(isPlain)) return plain;
  const digest = createHash("sha256").update(path).digest("hex").slice(0, DIGEST_CHARS);
  const readable = path
    .replaceAll("/", SLASH)
    .replaceAll(/[^a-zA-Z0-9_-]/g, "_")
    .slice(0, TOOL_NAME_MAX - DIGEST.length - DIGEST_CHARS)
    .replaceAll(/_{3,}/g, SLASH)
    .replace(/_+$/, "");
  return `${readable}${DIGEST}${digest}`;
}

/** The path of a tool name; undefined for a name with a digest, whose path must be looked up, and for an invalid name. */
export function pathOfToolName(name: string): string | undefined {
  const path = name.replaceAll(SLASH, "/");
  return agentToolName(path) === name ? path : undefined;
}

/** True for a name whose path must be looked for. */
export function hasDigest(name: string): boolean {
  return name.length <= TOOL_NAME_MAX && /^[a-zA-Z0-9_-]*___[0-9a-f]{16}$/.test(name);
}

/** Underscores within it are single, and none touches a slash: then `__` can only be one. */
function isPlain(segment: string): boolean {
  return /^[a-zA-Z0-9-]+(?:_[a-zA-Z0-9-]+)*$/.test(segment);
}
