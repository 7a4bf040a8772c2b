import type { ProgramKeychainEntry } from "../engine/program.ts";
import type { Template } from "../language/template.ts";
import { View } from "../language/view.ts";
import type { CredentialSource } from "../ports/credentials.ts";
import { FlowError, messageOf } from "../schema/errors.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../schema/json.ts";

/**
 * `keychain` of a step's templates: the entries that they name, in the order of the playbook's list (language document,
 * section 9); an entry's own templates may read earlier ones. An entry that cannot be resolved fails the template that
 * reads it, and no other.
 *
 * @param wanted names of the entries that the templates read; `all` when that cannot be known.
 * @param note is told the fields of every entry that was resolved: they are secrets.
 */
export async function openKeychain(
  entries: readonly ProgramKeychainEntry[],
  wanted: ReadonlySet<string> | "all",
  credentials: CredentialSource,
  render: (template: Template, keychain: View) => Promise<Json>,
  note: (secret: JsonObject) => void,
): Promise<View> {
  const resolved = new Map<string, JsonObject | FlowError>();
  const view = new KeychainView(resolved);
  for (const { definition, template } of entries) {
    if (wanted !== "all" && !wanted.has(definition.name)) continue;
    const entry = await resolveEntry(definition.name, () => render(template, view), credentials);
    if (!(entry instanceof FlowError)) note(entry);
    resolved.set(definition.name, entry);
  }
  return view;
}

/** `keychain.<name>`; an entry that is missing is an error, not undefined. */
class KeychainView extends View {
  readonly #entries: ReadonlyMap<string, JsonObject | FlowError>;

  constructor(entries: ReadonlyMap<string, JsonObject | FlowError>) {
    super();
    this.#entries = entries;
  }

  override get(key: string | number): unknown {
    const entry = this.#entries.get(String(key));
    if (entry === undefined) throw notFound(String(key));
    if (entry instanceof FlowError) throw entry;
    return new EntryView(String(key), entry);
  }

  override plain(): unknown {
    throw new FlowError("KEYCHAIN", "The keychain can only be read field by field, as keychain.<name>.<field>");
  }
}

/** `keychain.<name>.<field>`; a field that is missing is an error, not undefined. */
class EntryView extends View {
  readonly #name: string;
  readonly #fields: JsonObject;

  constructor(name: string, fields: JsonObject) {
    super();
    this.#name = name;
    this.#fields = fields;
  }

  override get(key: string | number): unknown {
    const field = own(this.#fields, String(key));
    if (field !== undefined) return field;
    const known = Object.keys(this.#fields).join(", ") || "none";
    throw new FlowError("KEYCHAIN", `KEYCHAIN: Entry '${this.#name}' has no field '${key}'; it has: ${known}`);
  }

  override plain(): unknown {
    return this.#fields;
  }
}

function notFound(name: string, why = ""): FlowError {
  return new FlowError("KEYCHAIN", `KEYCHAIN: Entry '${name}' not found${why}`);
}

/** Fields that stand in the playbook itself, or those of a credential: the one it names, else the one of its own name. */
async function resolveEntry(
  name: string,
  render: () => Promise<Json>,
  credentials: CredentialSource,
): Promise<JsonObject | FlowError> {
  try {
    const rendered = await render();
    const definition = isJsonObject(rendered) ? rendered : {};
    const kind = String(own(definition, "kind") ?? "");
    if (kind === "static") return staticFields(name, definition);
    const named = own(definition, "credential") ?? (isCredentialKind(kind) ? own(definition, "auth") : undefined);
    const wanted = typeof named === "string" ? named : name;
    const credential = await credentials.find(wanted);
    if (credential !== undefined) return credential.data;
    return notFound(name, `: there is no credential '${wanted}', and this runtime does not resolve kind '${kind}'`);
  } catch (error) {
    return notFound(name, `: ${messageOf(error)}`);
  }
}

function staticFields(name: string, definition: JsonObject): JsonObject | FlowError {
  const data = own(definition, "data") ?? own(definition, "map");
  return isJsonObject(data) ? data : notFound(name, ": a static entry needs 'data', a map of its fields");
}

function isCredentialKind(kind: string): boolean {
  return kind === "credential" || kind === "bearer" || kind.endsWith("_credential");
}
