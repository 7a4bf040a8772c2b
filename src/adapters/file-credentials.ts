import { readFile } from "node:fs/promises";
import * as v from "valibot";
import type { CredentialSource, StoredCredential } from "../ports/credentials.ts";
import { FlowError, messageOf } from "../schema/words/errors.ts";
import { isJsonObject, type JsonObject, own } from "../schema/words/json.ts";

/* Every message is our own: those of the library show what they got, which is a secret. */
const CredentialSchema = v.looseObject(
  {
    type: v.string("must be a text: sqldb, basic, bearer, api_key, …"),
    data: v.custom<JsonObject>(isJsonObject, "must be a map of the credential's fields"),
  },
  "is missing: a credential is {type, data}",
);

/** Prefix of environment variables that hold a credential as JSON: `FLOW_CREDENTIAL_PG_DEMO` is `pg_demo`. */
export const CREDENTIAL_PREFIX = "FLOW_CREDENTIAL_";

/** The variable that holds the credential of a name. */
export function credentialVariable(name: string): string {
  return `${CREDENTIAL_PREFIX}${name.toUpperCase().replace(/[^A-Z0-9]/g, "_")}`;
}

/**
 * Credentials of a local run: from a JSON file `{name: {type, data}}`, and from variables `FLOW_CREDENTIAL_<NAME>` that contain
 * one such `{type, data}` each and take precedence. Read on first use; errors name the credential and the place, never a value.
 */
export function createFileCredentials(
  file: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): CredentialSource {
  let loaded: Promise<JsonObject> | undefined;
  return {
    async find(name) {
      const variable = credentialVariable(name);
      const text = environment[variable];
      // An empty variable counts as unset, as with every setting.
      if (text !== undefined && text.trim() !== "") return parseCredential(name, parseJson(text, variable), variable);
      if (file === undefined) return undefined;
      loaded ??= readCredentials(file);
      const entry = own(await loaded, name);
      return entry === undefined ? undefined : parseCredential(name, entry, file);
    },
  };
}

/** The whole file, unread. Throws `FlowError` FILE_UNREADABLE, INVALID_SETTING. */
export async function readCredentials(file: string): Promise<JsonObject> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (cause) {
    throw new FlowError("FILE_UNREADABLE", `Cannot read the credentials file ${file}: ${messageOf(cause)}`, { cause });
  }
  const parsed = parseJson(text, file);
  if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) return parsed as JsonObject;
  throw new FlowError("INVALID_SETTING", `${file} must hold one JSON object: {name: {type, data}}`);
}

/** JSON of a place; the parser's own message may quote the text, which is a secret. Throws `FlowError` INVALID_SETTING. */
export function parseJson(text: string, place: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new FlowError("INVALID_SETTING", `${place} is not JSON`);
  }
}

function parseCredential(name: string, value: unknown, place: string): StoredCredential {
  const result = v.safeParse(CredentialSchema, value);
  if (result.success) return { name, type: result.output.type, data: result.output.data };
  const [issue] = result.issues;
  const key = v.getDotPath(issue) ?? "";
  const what = key === "" ? "it is no map: a credential is {type, data}" : `'${key}' ${issue.message}`;
  throw new FlowError("INVALID_SETTING", `Credential '${name}' in ${place}: ${what}`);
}
