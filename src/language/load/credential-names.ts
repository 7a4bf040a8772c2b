import { isJsonObject, type Json, own } from "../../schema/words/json.ts";

/** A credential that an `auth` names. */
export interface NamedCredential {
  name: string;
  /** Where in the `auth` the name stands: `.credential`, `.source_db.name`; empty for the value itself. */
  at: string;
}

/** The credentials that an `auth` names (language document, section 9); an inline one names none. */
export function namedCredentials(auth: Json | undefined): NamedCredential[] {
  if (typeof auth === "string") return auth === "" ? [] : [{ name: auth, at: "" }];
  if (!isJsonObject(auth)) return [];
  const only = byKey(auth);
  if (only !== undefined) return [only];
  if (typeof own(auth, "type") === "string" || own(auth, "source") !== undefined) return [];
  return Object.entries(auth).flatMap(([alias, entry]): NamedCredential[] => {
    if (typeof entry === "string") return [{ name: entry, at: `.${alias}` }];
    const inner = byKey(entry);
    return inner === undefined ? [] : [{ name: inner.name, at: `.${alias}${inner.at}` }];
  });
}

/** The names alone. */
export function credentialNames(auth: Json | undefined): string[] {
  return namedCredentials(auth).map(({ name }) => name);
}

function byKey(entry: Json): NamedCredential | undefined {
  if (!isJsonObject(entry)) return undefined;
  const key = ["credential", "name"].find((one) => typeof own(entry, one) === "string");
  return key === undefined ? undefined : { name: String(own(entry, key)), at: `.${key}` };
}
