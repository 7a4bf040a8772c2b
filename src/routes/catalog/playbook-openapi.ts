import { inputsOfDocument, schemaOfInputs } from "../../schema/inputs/declared-inputs.ts";
import { EXECUTE_ROUTES } from "../../schema/routes/executions.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, type JsonObject, own } from "../../schema/words/json.ts";
import { openApiDocument } from "../system/openapi.ts";

/** What is read of an entry of the catalog. */
interface PlaybookEntry {
  path: string;
  kind: string;
  version: number;
  payload: Readonly<Record<string, unknown>>;
}

/**
 * OpenAPI of the one call that starts this version of a playbook or agent: that of `POST /api/execute`, with the path as a constant and the
 * schema of the inputs. Other clients than ours check and complete them by it. Throws `FlowError` INVALID_INPUT for an entry that nothing can start.
 */
export function playbookOpenApi(entry: PlaybookEntry, version: string | undefined): JsonObject {
  const { path, kind, payload } = entry;
  if (kind !== "playbook" && kind !== "agent") {
    throw new FlowError("INVALID_INPUT", `${path} is of the kind ${kind}: only playbooks and agents have inputs`);
  }
  const document = openApiDocument([EXECUTE_ROUTES.execute], String(entry.version)) as unknown as Described;
  const { post } = document.paths["/api/execute"];
  const { schema } = post.requestBody.content["application/json"];
  const { path: _, catalog_id: __, version: ___, resource_kind: ____, ...rest } = schema.properties;
  const workload = inputSchema(payload);
  const needsInputs = Array.isArray(workload["required"]);
  post.requestBody.content["application/json"].schema = {
    ...schema,
    properties: {
      path: { const: path },
      ...(version !== undefined && { version: { const: version } }),
      ...(kind === "agent" && { resource_kind: { const: "agent" } }),
      ...rest,
      workload,
    },
    required: ["path", ...(kind === "agent" ? ["resource_kind"] : []), ...(needsInputs ? ["workload"] : [])],
  };
  const described = own(payload, "metadata");
  const description = isJsonObject(described) ? own(described, "description") : undefined;
  const summary = typeof description === "string" ? { description } : {};
  return { ...document, info: { title: path, version: String(entry.version), ...summary } } as unknown as JsonObject;
}

/** What is read of the document of one route. */
interface Described {
  paths: { "/api/execute": { post: { requestBody: { content: { "application/json": { schema: ObjectSchema } } } } } };
}

interface ObjectSchema extends JsonObject {
  properties: JsonObject;
}

/** Declared inputs are all that there are; without any, the defaults are what is known of them. */
function inputSchema(payload: Readonly<Record<string, unknown>>): JsonObject {
  const declared = inputsOfDocument(payload);
  if (declared !== undefined) return schemaOfInputs(declared.inputs, declared.defaults);
  const workload = own(payload, "workload");
  return { ...schemaOfInputs({}, isJsonObject(workload) ? workload : {}), additionalProperties: true };
}
