import { KeychainEntry } from "../../schema/documents/document.ts";
import { isJsonObject, type JsonObject } from "../../schema/words/json.ts";
import type { KeychainDefinition } from "../../schema/words/playbook.ts";
import { didYouMean } from "./source/hints.ts";
import { field, firstField, isMap, nameOf, type Place, textOf } from "./source/place.ts";
import { checkKeys, legacy, noteText, type Reading } from "./source/reading.ts";

const KEYCHAIN_KINDS = [
  "secret_manager",
  "secrets",
  "oauth2",
  "http",
  "bearer",
  "static",
  "credential",
  "google_id_token",
];

const PROVIDERS = ["cloud_a", "cloud_b", "cloud_c", "gcp", "aws", "azure"];

/** Keychain entries as written, except that `secrets` is `secret_manager` (language document, section 9). */
export function readKeychain(reading: Reading, place: Place | undefined): KeychainDefinition[] {
  const entries: KeychainDefinition[] = [];
  const names = new Set<string>();
  for (const item of place?.items ?? []) {
    checkKeys(reading, item, KeychainEntry);
    noteText(reading, item);
    const name = textOf(field(item, "name"));
    const written = readEntryKind(reading, item);
    if (name === undefined || written === undefined) continue;
    checkUnique(reading, field(item, "name"), name, names);
    const kind = written === "secrets" ? "secret_manager" : written;
    if (!KEYCHAIN_KINDS.includes(kind) && !kind.endsWith("_credential")) {
      const message = `nothing resolves a keychain entry of kind \`${kind}\``;
      reading.report("unknown-kind", firstField(item, "kind", "type"), message, () => didYouMean(kind, KEYCHAIN_KINDS));
    }
    checkProvider(reading, field(item, "provider"));
    const [lacks, hint] = lacking(item, kind) ?? [];
    if (lacks !== undefined) reading.report("incomplete-entry", item, `the entry \`${name}\` has no ${lacks}`, hint);
    entries.push({ ...readReference(reading, item), name, kind });
  }
  return entries;
}

/** `kind`, or `type` of other documents; an entry that only names a credential is one. Undefined where nothing says it. */
function readEntryKind(reading: Reading, item: Place): string | undefined {
  if (!isMap(item)) return undefined;
  const kind = field(item, "kind");
  if (kind !== undefined) return textOf(kind);
  const type = field(item, "type");
  if (type !== undefined) {
    legacy(reading, type, "`type` of a keychain entry", "`kind: …`");
    return textOf(type);
  }
  if (field(item, "service_account_credential") !== undefined || field(item, "service_account_secret") !== undefined) {
    legacy(reading, item, "a keychain entry without `kind`", "`kind: google_id_token`");
    return "google_id_token";
  }
  if (firstField(item, "credential", "ref") !== undefined) {
    legacy(reading, item, "a keychain entry without `kind`", "`kind: credential`");
    return "credential";
  }
  reading.report("missing-key", item, `${nameOf(item)} has no \`kind\``, "add `kind: …`");
  return undefined;
}

/** The entry's keys, the credential that it names under today's one. */
function readReference(reading: Reading, item: Place): JsonObject {
  const { type: _type, ref, service_account_credential: account, ...rest } = mapOf(item);
  if (typeof ref === "string") {
    legacy(reading, item.fields.get("ref") ?? item, "`ref` of a keychain entry", "`credential: …`");
    rest["credential"] ??= ref;
  }
  if (typeof account === "string") {
    const place = item.fields.get("service_account_credential") ?? item;
    legacy(reading, place, "`service_account_credential`", "`auth: …`");
    rest["auth"] = account;
  }
  return rest;
}

function checkProvider(reading: Reading, place: Place | undefined): void {
  const provider = textOf(place)?.toLowerCase();
  if (provider === undefined || provider.includes("{{") || PROVIDERS.includes(provider)) return;
  const message = `no secret manager is called \`${provider}\``;
  reading.report("unknown-kind", place, message, () => didYouMean(provider, PROVIDERS));
}

/** What an entry of this kind needs and does not have, and a hint. */
function lacking(item: Place, kind: string): [what: string, hint: string] | undefined {
  const has = (...keys: string[]) => keys.some((key) => field(item, key) !== undefined);
  const isNamed = has("auth", "credential", "ref", "service_account_credential");
  switch (kind) {
    case "secret_manager":
      if (!has("provider")) return ["`provider`", "cloud_a, cloud_b or cloud_c"];
      if (!has("map")) return ["`map`", "it says which field is which secret"];
      return isNamed ? undefined : ["`auth`", "name the credential that reaches the secret manager"];
    case "oauth2":
      return isNamed || has("endpoint") ? undefined : ["`endpoint`", "or name a credential in `auth`"];
    case "http":
      return has("endpoint") ? undefined : ["`endpoint`", "the address of its request"];
    case "google_id_token":
      if (!has("target_audience")) return ["`target_audience`", "it says whom the token is for"];
      return isNamed ? undefined : ["`auth`", "name a service account, or write {source: adc}"];
    case "static":
      return has("data", "map") ? undefined : ["`data`", "a map of its fields"];
    default:
      return undefined;
  }
}

function mapOf(place: Place): JsonObject {
  return isJsonObject(place.value) ? place.value : {};
}

/** Reports a second entry of the same name. */
export function checkUnique(reading: Reading, place: Place | undefined, name: string, names: Set<string>): void {
  if (names.has(name))
    reading.report("duplicate-name", place, `two entries are called \`${name}\``, "rename one of them");
  names.add(name);
}
