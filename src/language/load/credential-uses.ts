import { isJsonObject, type Json, type JsonObject, own } from "../../schema/words/json.ts";
import { namedCredentials } from "./credential-names.ts";

/** A place of a document that names a credential. */
export interface CredentialUse {
  credential: string;
  /** Where: `workflow[0].tool.auth`. */
  place: string;
  /** The place has a template, and this is what the workload's default makes of it: a run may be given another name. */
  byDefault: boolean;
}

/** Depth of values that are searched: deeper ones were refused at registration. */
const DEPTH_MAX = 200;
/** Most uses of one document that are listed. */
const USES_MAX = 1_000;

/**
 * The credentials that a document of the catalog names (language document, section 9): in `auth` and `credential` of tasks,
 * cursors, fetched scripts, keychain entries and MCP resources, and in calls of `token()`. Names that are known only during a
 * run are not included: computed ones, and inputs without a default.
 */
export function credentialUses(payload: JsonObject): CredentialUse[] {
  const uses: CredentialUse[] = [];
  const note = (name: string, place: string) => {
    const known = resolved(name, payload);
    if (known === undefined || uses.length >= USES_MAX) return;
    if (uses.some((use) => use.credential === known.name && use.place === place)) return;
    uses.push({ credential: known.name, place, byDefault: known.byDefault });
  };
  const { keychain, workload: _inputs, metadata: _about, ...rest } = payload;
  if (Array.isArray(keychain)) {
    for (const [index, entry] of keychain.entries()) {
      if (isJsonObject(entry)) ofEntry(entry, `keychain[${index}]`, note);
    }
  }
  for (const [key, value] of Object.entries(rest)) visit(value, key, isData(key), DEPTH_MAX, note);
  return uses;
}

type Note = (name: string, place: string) => void;

/** Keys whose values are the author's data: an `auth` in them is a word like any other. Calls of `token()` count there too. */
const DATA_KEYS = new Set([
  ...["input", "args", "arguments", "params", "headers", "body", "json", "form", "data", "payload", "set", "vars"],
  ...["commands", "command", "query", "code", "result"],
]);

function isData(key: string): boolean {
  return DATA_KEYS.has(key);
}

/** A task's label may be a keyword: `query: {kind: sqldb, auth: …}`. */
function isTaskBody(value: Json): boolean {
  return isJsonObject(value) && typeof own(value, "kind") === "string";
}

function visit(value: Json, place: string, inData: boolean, depth: number, note: Note): void {
  if (depth === 0) return;
  if (typeof value === "string") {
    for (const name of tokenCalls(value)) note(name, place);
    return;
  }
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) visit(item, `${place}[${index}]`, inData, depth - 1, note);
    return;
  }
  if (!isJsonObject(value)) return;
  const isTask = isTaskBody(value);
  for (const [key, inner] of Object.entries(value)) {
    const at = `${place}.${key}`;
    if (!inData && (key === "auth" || key === "credential")) {
      for (const named of namedCredentials(inner)) note(named.name, at + named.at);
    }
    visit(inner, at, inData || (isData(key) && (isTask || !isTaskBody(inner))), depth - 1, note);
  }
}

/** A keychain entry reads the credential that it names; one whose fields come from a credential reads the one with its name. */
function ofEntry(entry: JsonObject, place: string, note: Note): void {
  visit(entry, place, true, DEPTH_MAX, note);
  const kind = own(entry, "kind") ?? own(entry, "type") ?? "credential";
  if (typeof kind !== "string" || kind === "static" || (kind === "bearer" && own(entry, "token") !== undefined)) return;
  for (const key of ["service_account_credential", "credential", "ref", "auth"]) {
    const named = namedCredentials(own(entry, key) as Json | undefined);
    for (const { name, at } of named) note(name, `${place}.${key}${at}`);
    if (named.length > 0) return;
  }
  const name = own(entry, "name");
  const isCredential = kind === "credential" || kind === "bearer" || kind.endsWith("_credential");
  if (isCredential && typeof name === "string") note(name, `${place}.name`);
}

const TOKEN_CALL = /\btoken\(\s*(?:(?:credential|auth)\s*=\s*)?(?:'([^'{}]{1,255})'|"([^"{}]{1,255})")/g;

function tokenCalls(text: string): string[] {
  if (!text.includes("token(")) return [];
  return [...text.matchAll(TOKEN_CALL)].map(([, single, double]) => single ?? double ?? "");
}

const OF_WORKLOAD = /^\s*\{\{\s*workload\.([\p{L}\p{N}_.-]+)\s*\}\}\s*$/u;

function resolved(name: string, payload: JsonObject): { name: string; byDefault: boolean } | undefined {
  if (!name.includes("{{") && !name.includes("{%")) return { name, byDefault: false };
  const path = OF_WORKLOAD.exec(name)?.[1]?.split(".") ?? [];
  let value: unknown = path.length === 0 ? undefined : own(payload, "workload");
  for (const key of path) value = isJsonObject(value) ? own(value, key) : undefined;
  return typeof value === "string" && value !== "" && !value.includes("{{")
    ? { name: value, byDefault: true }
    : undefined;
}
