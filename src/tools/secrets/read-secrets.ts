import type { StoredCredential } from "../../ports/credentials.ts";
import type { ObtainedSecret } from "../../ports/secret-source.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { type Json, type JsonObject, own, setOwn } from "../../schema/words/json.ts";
import { openAws } from "./aws.ts";
import { openAzure } from "./azure.ts";
import { openGoogle } from "./google.ts";
import type { ManagerParts, OpenManager } from "./manager.ts";
import { readSecretMap, selectKey } from "./secret-path.ts";

const PROVIDERS: Readonly<Record<string, OpenManager>> = {
  cloud_a: openGoogle,
  gcp: openGoogle,
  cloud_b: openAws,
  aws: openAws,
  cloud_c: openAzure,
  azure: openAzure,
};

/** Secrets that are read at a time. */
const AT_ONCE = 8;

/**
 * The fields of an entry of kind `secret_manager`: each key of `map` with its secret. A secret that several fields use is read
 * once; a missing secret fails the entry.
 */
export async function readSecrets(
  parts: ManagerParts,
  definition: JsonObject,
  credential: StoredCredential | undefined,
  signal: AbortSignal,
): Promise<ObtainedSecret> {
  const provider = String(own(definition, "provider") ?? "").toLowerCase();
  const open = own(PROVIDERS, provider) as OpenManager | undefined;
  if (open === undefined) {
    throw new FlowError("INVALID_INPUT", `The entry's 'provider' is '${provider}': cloud_a, cloud_b or cloud_c.`);
  }
  const manager = open(parts, definition, credential);
  const wanted = readSecretMap(definition).map(([field, path]) => ({ field, path: manager.readPath?.(path) ?? path }));
  const texts = new Map<string, Promise<string>>();
  const fields: JsonObject = {};
  for (let from = 0; from < wanted.length; from += AT_ONCE) {
    const some = wanted.slice(from, from + AT_ONCE).map(async ({ field, path }): Promise<[string, Json]> => {
      const id = JSON.stringify([path.path, path.version]);
      const text = texts.get(id) ?? manager.read(path, signal);
      texts.set(id, text);
      return [field, selectKey(await text, path)];
    });
    for (const [field, value] of await Promise.all(some)) setOwn(fields, field, value);
  }
  return { fields };
}
