import type { CredentialSource } from "../../ports/credentials.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../../schema/words/json.ts";
import type { Credential } from "../../tools/contract/tool.ts";
import { SCRIPT_AUTH } from "../../tools/scripts/auth.ts";
import { resolveAuth } from "./resolve-auth.ts";

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
