import * as v from "valibot";
import { readCredentialBody } from "../../schema/api/credentials.ts";
import { PLAYBOOKS_KEY } from "../../schema/rules/credential-playbooks.ts";
import { CREDENTIAL_TYPES, credentialProblems, fieldType } from "../../schema/rules/credential-types.ts";
import { SecretSchema, secretRefused } from "../../schema/rules/secret-schema.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, type Json, type JsonObject, own, setOwn } from "../../schema/words/json.ts";
import { type CliInput, type CliIo, listOption, textOption } from "../command-line/command.ts";
import { readTextOption, warnOfArgument } from "../terminal/text-file.ts";

/**
 * What `flow credentials set` sends: the file's object, over it the options, over its data the fields of the command line.
 *
 * Throws `FlowError` USAGE, FILE_UNREADABLE, INVALID_INPUT, and INVALID_SECRET with all problems. No message contains a value.
 */
export async function readCredentialContent(input: CliInput, name: string, fields: readonly string[]) {
  const { options, io } = input;
  const file = textOption(options, "file");
  if (file === undefined && fields.length === 0) {
    throw new FlowError(
      "USAGE",
      "'flow credentials set' needs data: KEY=VALUE …, or --file FILE (- is standard input)",
    );
  }
  const content = file === undefined ? {} : await readObject(file, "--file", io);
  const type = textOption(options, "type") ?? own(content, "type");
  const schemaText = textOption(options, "schema");
  const description = textOption(options, "description");
  const tags = listOption(options, "tag");
  const paths = listOption(options, "paths");
  if (type === undefined)
    throw new FlowError("USAGE", `What type is '${name}'? --type is one of ${CREDENTIAL_TYPES.join(", ")}`);
  const merged: JsonObject = {
    ...content,
    name,
    type: type as Json,
    ...(schemaText !== undefined && { schema: await readSchema(schemaText, io) }),
    ...defined({ description }),
    ...(tags.length > 0 && { tags }),
    ...(paths.length > 0 && { meta: { ...objectOf(own(content, "meta")), [PLAYBOOKS_KEY]: [...paths] } }),
  };
  merged["data"] = await withFields(merged, fields, io);
  const body = readCredentialBody(merged);
  const problems = credentialProblems(body.type, body.data, body.schema ?? {});
  if (problems.length > 0) throw secretRefused(problems);
  return body;
}

/** Fields that hold secrets in the types of credentials; others, as hosts and users, are no secret. */
function isSecretName(key: string): boolean {
  return /pass|secret|token$|private_key|^key$|api_?key|connection_string|creds/i.test(key);
}

function objectOf(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}

/** `KEY=VALUE`, `KEY=@FILE`, `KEY:=JSON`. A value is text unless the credential's type or schema says otherwise. */
async function withFields(content: JsonObject, fields: readonly string[], io: CliIo): Promise<JsonObject> {
  const given = own(content, "data");
  const data: JsonObject = isJsonObject(given) ? { ...given } : {};
  const seen: string[] = [];
  const type = CREDENTIAL_TYPES.find((known) => known === content["type"]) ?? "custom";
  const schema = v.safeParse(SecretSchema, content["schema"]);
  for (const field of fields) {
    const [, key, isJson, text] = /^([^=:]+)(:?)=(.*)$/s.exec(field) ?? [];
    // The word itself may be a secret that lost its key.
    if (key === undefined || text === undefined)
      throw new FlowError("USAGE", "A field is KEY=VALUE, KEY=@FILE or KEY:=JSON");
    const expected = fieldType(type, key, schema.success ? schema.output : {});
    const isJsonValue = expected !== undefined && expected !== "string";
    if (isJson === ":") setOwn(data, key, parse(text, `${key}:=…`));
    else if (text.startsWith("@")) setOwn(data, key, await readTextOption(text.slice(1), key, io));
    else setOwn(data, key, isJsonValue ? jsonOrText(text) : text);
    if (isSecretName(key) && (isJson === ":" || !text.startsWith("@"))) seen.push(key);
  }
  const [first] = seen;
  if (first !== undefined) warnOfArgument(io, seen.join(", "), `${first}=@FILE reads a file, ${first}=@- a pipe`);
  return data;
}

async function readSchema(text: string, io: CliIo): Promise<Json> {
  return text.startsWith("@") ? await readObject(text.slice(1), "--schema", io) : parse(text, "--schema");
}

async function readObject(file: string, what: string, io: CliIo): Promise<JsonObject> {
  const value = parse(await readTextOption(file, what, io), `${what} ${file}`);
  if (isJsonObject(value)) return value;
  throw new FlowError("INVALID_INPUT", `${what} ${file} must hold one JSON object`);
}

/** The parser's own message may quote the text, which is a secret. */
function parse(text: string, where: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    throw new FlowError("USAGE", `${where} is not JSON`);
  }
}

/** What is no JSON stays text, and is refused for its type with the others. */
function jsonOrText(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}
