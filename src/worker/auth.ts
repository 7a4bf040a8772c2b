import type { CredentialSource } from "../ports/credentials.ts";
import { FlowError } from "../schema/errors.ts";
import { isJsonObject, type Json, own, setOwn } from "../schema/json.ts";
import type { Credential } from "../tools/tool.ts";

/**
 * The credentials that a task's `auth` names (language document, section 9): a name, `{credential}`, or a map of aliases.
 * A single one stands under `default` too. An inline map (`type` with its fields, or `source`) is left to the tool, as a
 * credential that has no name.
 *
 * Throws `FlowError` when a named credential does not exist.
 */
export async function resolveAuth(
  source: CredentialSource,
  auth: Json | undefined,
): Promise<Record<string, Credential>> {
  if (auth === undefined || auth === null || auth === "") return {};
  if (typeof auth === "string") return single(await find(source, auth));
  if (!isJsonObject(auth)) {
    throw new FlowError("INVALID_INPUT", "'auth' must be the name of a credential, or a map");
  }
  const name = own(auth, "credential") ?? own(auth, "name");
  if (typeof name === "string") return single(await find(source, name));
  if (typeof own(auth, "type") === "string" || own(auth, "source") !== undefined) return single(inline(auth));
  const found: Record<string, Credential> = {};
  for (const alias of Object.keys(auth)) {
    const entry = own(auth, alias);
    const named = isJsonObject(entry) ? (own(entry, "credential") ?? own(entry, "name")) : entry;
    if (typeof named === "string") setOwn(found, alias, await find(source, named));
    else if (isJsonObject(entry)) setOwn(found, alias, inline(entry));
  }
  const [only, another] = Object.values(found);
  return only === undefined || another !== undefined ? found : { ...found, default: only };
}

function single(credential: Credential): Record<string, Credential> {
  return { [credential.name]: credential, default: credential };
}

function inline(auth: Record<string, Json>): Credential {
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
