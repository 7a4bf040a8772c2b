import { createFileCatalog } from "../../local/catalog.ts";
import { loadConfig } from "../../platform/config/config.ts";
import { inputsOfDocument, schemaOfInputs } from "../../schema/inputs/declared-inputs.ts";
import { CATALOG_ROUTES } from "../../schema/routes/catalog.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../../schema/words/json.ts";
import type { CliIo } from "../command-line/command.ts";
import { columns, type Row } from "../command-line/help.ts";
import { callServer } from "../server/client.ts";
import { DEFAULT_ORIGIN, serverTarget } from "../server/target.ts";
import { cleanText } from "../terminal/text.ts";
import { loadNamed } from "./named-playbook.ts";

/**
 * What `flow run PLAYBOOK --help` adds to the help of the command: the inputs of the playbook, of a document here or else of a server that
 * is set. Throws `FlowError` as a run does that does not find its playbook.
 */
export async function inputHelp([playbook = ""]: readonly string[], io: CliIo): Promise<string> {
  const { path, schema } = await schemaOf(playbook, io);
  const rows = rowsOf(schema);
  const named = `'${cleanText(path)}'`;
  if (rows.length === 0) return `${named} names no inputs\n`;
  return `${columns(`Inputs of ${named}, as --set NAME=VALUE`, rows, io.stdout)}\n`;
}

async function schemaOf(playbook: string, io: CliIo): Promise<{ path: string; schema: JsonObject }> {
  try {
    const { program } = await loadNamed(createFileCatalog(), playbook, io);
    const { path, inputs = {}, workload } = program.playbook;
    return { path, schema: schemaOfInputs(inputs, workload) };
  } catch (error) {
    const config = loadConfig(io.environment);
    const target = await serverTarget({ arguments: [], options: {}, io }, config);
    const isElsewhere = error instanceof FlowError && error.code === "NOT_FOUND" && target.origin !== DEFAULT_ORIGIN;
    if (!isElsewhere) throw error;
    const params = { path: playbook };
    const { path, payload } = await callServer(target, CATALOG_ROUTES.resource, { params, signal: io.signal });
    const { inputs, defaults } = inputsOfDocument({ inputs: {}, ...payload }) ?? { inputs: {}, defaults: {} };
    return { path, schema: schemaOfInputs(inputs, defaults) };
  }
}

function rowsOf(schema: JsonObject): Row[] {
  const properties = own(schema, "properties");
  const required = own(schema, "required");
  if (!isJsonObject(properties)) return [];
  return Object.entries(properties).map(([name, written]) => {
    const property = isJsonObject(written) ? written : {};
    const isRequired = Array.isArray(required) && required.includes(name);
    const words = [typeOf(property), isRequired && "required", own(property, "writeOnly") === true && "secret"];
    const initial = own(property, "default") as Json | undefined;
    const told = [
      words.filter(Boolean).join(", "),
      initial !== undefined && `default ${JSON.stringify(initial)}`,
      own(property, "description"),
    ];
    return [cleanText(name), cleanText(told.filter((part) => typeof part === "string" && part !== "").join("; "))];
  });
}

/** `date` for a text of that format, `"a" | "b"` for choices, else the type. */
function typeOf(property: JsonObject): string {
  const choices = own(property, "enum");
  if (Array.isArray(choices)) return choices.map((choice) => JSON.stringify(choice)).join(" | ");
  const [type, format] = [own(property, "type"), own(property, "format")];
  if (typeof format === "string") return format;
  return [type].flat().filter(Boolean).join(" or ");
}
