import type { CredentialSource } from "../../ports/credentials.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { isJsonObject, type Json, type JsonObject, own, setOwn } from "../../schema/words/json.ts";
import { PARSED_ONLY_KINDS, RUNNABLE_KINDS } from "../../schema/words/playbook.ts";
import { canonicalKind } from "../../schema/words/task-kinds.ts";
import type { Credential } from "../../tools/contract/tool.ts";
import { SCRIPT_AUTH } from "../../tools/scripts/auth.ts";

/**
 * The credentials that a task's `auth` names (language document, section 9): a name, `{credential}`, or a map of aliases.
 * A single one stands under `default` too, and so does that of the task's own kind: a map from kinds to credentials
 * gives each tool its own. An inline map (`type` with its fields, or `source`) is left to the tool, as a credential that
 * has no name.
 *
 * Throws `FlowError` when a named credential does not exist.
 */
export async function resolveAuth(
  source: CredentialSource,
  auth: Json | undefined,
  kind: string,
): Promise<Record<string, Credential>> {
  if (auth === undefined || auth === null || auth === "") return {};
  if (typeof auth !== "string" && !isJsonObject(auth)) {
    throw new FlowError("INVALID_INPUT", "'auth' must be the name of a credential, or a map");
  }
  const only = await findCredential(source, auth);
  if (only !== undefined) return { [only.name]: only, default: only };
  return await byAlias(source, auth as JsonObject, kind);
}

/** The credential of a name, of `{credential}`, or of an inline map; undefined for a map of aliases. Throws as above. */
export async function findCredential(
  source: CredentialSource,
  auth: string | JsonObject,
): Promise<Credential | undefined> {
  if (typeof auth === "string") return await find(source, auth);
  const name = own(auth, "credential") ?? own(auth, "name");
  if (typeof name === "string") return withOptions(await find(source, name), auth);
  return typeof own(auth, "type") === "string" || own(auth, "source") !== undefined ? inline(auth) : undefined;
}

async function byAlias(source: CredentialSource, auth: JsonObject, kind: string): Promise<Record<string, Credential>> {
  const aliases = Object.keys(auth);
  const mine = aliases.find((alias) => canonicalKind(alias) === kind);
  const isPerTool = mine !== undefined && aliases.every(isKind);
  const found: Record<string, Credential> = {};
  for (const alias of isPerTool ? [mine] : aliases) {
    const entry = own(auth, alias);
    if (typeof entry === "string") setOwn(found, alias, await find(source, entry));
    else if (isJsonObject(entry)) setOwn(found, alias, (await findCredential(source, entry)) ?? inline(entry));
  }
  const [only, another] = Object.values(found);
  const chosen =
    mine !== undefined ? (own(found, mine) as Credential | undefined) : another === undefined ? only : undefined;
  return chosen === undefined || Object.hasOwn(found, "default") ? found : { ...found, default: chosen };
}

function isKind(alias: string): boolean {
  const kind = canonicalKind(alias);
  return [...RUNNABLE_KINDS, ...PARSED_ONLY_KINDS].some((known) => known === kind);
}

/** `{credential: x, scopes: […]}`: what the token of this credential is wanted for, here. */
function withOptions(credential: Credential, auth: JsonObject): Credential {
  const scopes = own(auth, "scopes");
  return scopes === undefined ? credential : { ...credential, data: { ...credential.data, scopes: scopes as Json } };
}

function inline(auth: JsonObject): Credential {
  return { name: "inline", type: String(own(auth, "type") ?? "custom"), data: auth };
}

async function find(source: CredentialSource, name: string): Promise<Credential> {
  const credential = await source.find(name);
  if (credential !== undefined) return credential;
  throw new FlowError(
    "NOT_FOUND",
    `There is no credential '${name}'; register it, or for a local run set FLOW_CREDENTIAL_<NAME> or add it to the file that FLOW_CREDENTIALS_FILE names`,
  );
}

/**
 * The credential that a task's `script.source.auth` names, for the request that fetches the script (language document,
 * section 8). An inline map is left to the tool. Throws `FlowError` when there is no such credential.
 */
export async function scriptAuth(
  source: CredentialSource,
  kind: string,
  config: JsonObject,
): Promise<Record<string, Credential>> {
  const auth = SCRIPTED.has(kind) ? field(field(config["script"], "source"), "auth") : undefined;
  const isInline = isJsonObject(auth) && own(auth, "credential") === undefined && own(auth, "name") === undefined;
  if (auth === undefined || isInline) return {};
  const { default: named } = await resolveAuth(source, auth, "http");
  return named === undefined ? {} : { [SCRIPT_AUTH]: named };
}

/** Kinds that read a `script`. */
const SCRIPTED: ReadonlySet<string> = new Set(["python", "sqldb", "duckdb", "warehouse"]);

function field(value: Json | undefined, key: string): Json | undefined {
  return isJsonObject(value) ? (own(value, key) as Json | undefined) : undefined;
}
