import { FlowError } from "../schema/words/errors.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../schema/words/json.ts";
import { CREDENTIAL_PREFIX, credentialVariable, parseJson, readCredentials } from "./file-credentials.ts";

/** A credential that was given to this process, not yet looked at. */
export interface GivenCredential {
  /** Where it was found: a variable or a file. */
  place: string;
  /** What `POST /api/credentials` takes. */
  body: JsonObject;
}

/**
 * All credentials of the environment and of the file; the environment takes precedence, as with {@link createFileCredentials}.
 * A variable's name in lower case is the credential's (`FLOW_CREDENTIAL_PG_DEMO` is `pg_demo`), unless the file has one that
 * the variable stands for, or its JSON has a `name`. Errors name the place, never a value. Throws `FlowError` INVALID_SETTING
 * and FILE_UNREADABLE.
 */
export async function listGivenCredentials(
  file: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<GivenCredential[]> {
  const inFile = file === undefined ? {} : await readCredentials(file);
  const nameOf = new Map(Object.keys(inFile).map((name) => [credentialVariable(name), name]));
  const given = new Map<string, GivenCredential>();
  for (const name of Object.keys(inFile)) {
    const entry = own(inFile, name) as Json;
    given.set(name, { place: `${file}: ${name}`, body: bodyOf(name, entry, `${file}: ${name}`) });
  }
  for (const [variable, text] of Object.entries(environment)) {
    if (!variable.startsWith(CREDENTIAL_PREFIX) || text === undefined || text.trim() === "") continue;
    const entry = parseJson(text, variable) as Json;
    const declaredName = isJsonObject(entry) ? own(entry, "name") : undefined;
    const small = variable.slice(CREDENTIAL_PREFIX.length).toLowerCase();
    const name = typeof declaredName === "string" ? declaredName : (nameOf.get(variable) ?? small);
    given.set(name, { place: variable, body: bodyOf(name, entry, variable) });
  }
  return [...given.values()];
}

function bodyOf(name: string, entry: Json, place: string): JsonObject {
  if (isJsonObject(entry)) return { ...entry, name };
  throw new FlowError("INVALID_SETTING", `${place}: a credential is a JSON object {type, data}`);
}
