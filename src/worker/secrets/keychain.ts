import { ValueNeeded } from "../../language/views/references.ts";
import { View } from "../../language/views/view.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { type JsonObject, own } from "../../schema/words/json.ts";
import { entryNotFound, FAILURE_KEPT_MS } from "./keychain-errors.ts";
import { type KeychainParts, resolveEntry } from "./keychain-resolve.ts";

/**
 * `keychain` of a command's templates (language document, section 9). An entry is resolved when a template first reads it, and
 * again when its value expires while the command runs; its own templates may read the entries before it. If it cannot be
 * resolved, only the templates that read it fail.
 */
export function openKeychain(parts: KeychainParts): View {
  const known = new Map<string, Known>();
  const underWay = new Map<string, Promise<void>>();
  const now = () => parts.deps.clock.now();
  const fetch = async (name: string): Promise<void> => {
    const found = await resolveEntry(parts, name, viewBefore).catch((error: unknown) => failureOf(name, error));
    if (found instanceof FlowError) known.set(name, { entry: found, until: now() + FAILURE_KEPT_MS });
    // A clock that differs from the store's must not make a live entry look as if it ended at once.
    else known.set(name, { entry: found.fields, until: Math.max(found.until, now() + 1_000) });
  };
  const once = (name: string): Promise<void> => {
    const running = underWay.get(name);
    if (running !== undefined) return untilAborted(running, parts.signal);
    const started = fetch(name).finally(() => underWay.delete(name));
    underWay.set(name, started);
    return untilAborted(started, parts.signal);
  };
  const read = (name: string): JsonObject => {
    const found = known.get(name);
    if (found === undefined || now() >= found.until) throw new ValueNeeded(`keychain.${name}`, () => once(name));
    if (found.entry instanceof FlowError) throw found.entry;
    return found.entry;
  };
  const viewBefore = (position: number): View => {
    const later = new Set(parts.entries.slice(position).map(({ definition }) => definition.name));
    return new KeychainView((name) => {
      if (later.has(name)) throw entryNotFound(name, "an entry reads only those before it in the list");
      return read(name);
    });
  };
  return new KeychainView(read);
}

/** An entry as it was found, and until when that holds. */
interface Known {
  entry: JsonObject | FlowError;
  until: number;
}

/** `keychain.<name>`; an entry that is missing is an error, not undefined. */
class KeychainView extends View {
  readonly #read: (name: string) => JsonObject;

  constructor(read: (name: string) => JsonObject) {
    super();
    this.#read = read;
  }

  override get(key: string | number): unknown {
    return new EntryView(String(key), this.#read(String(key)));
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

function failureOf(name: string, error: unknown): FlowError {
  return error instanceof FlowError && error.code === "KEYCHAIN" ? error : entryNotFound(name, messageOf(error));
}

/** Waits for others' work as long as the signal lets it; the work itself goes on, since others wait for it too. */
async function untilAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  let stop = () => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason as Error);
    signal.addEventListener("abort", stop, { once: true });
  });
  try {
    await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
