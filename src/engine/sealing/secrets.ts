import type { Json } from "../../schema/words/json.ts";
import { mayHoldSealed, SEALED, SECRET_MASK, type Sealer } from "../../schema/words/sealed.ts";
import { eachSecret, type Noting } from "./each-secret.ts";
import { mapJson, someJson } from "./map-json.ts";
import { createSecretIndex, type Looking, SEALED_CHARS_MIN, type SecretIndex } from "./secret-index.ts";
import { commonVariantsOf, variantsOf } from "./secret-variants.ts";

/**
 * Secret texts, known by their origin and not by their appearance: those of a command, or of an execution's decisions. Secrets
 * are sealed in values for other steps and hidden in text for people. A sealed text opens as exactly the original; keys of
 * objects are never changed; a secret of fewer than eight characters is only hidden, as a whole word.
 */
export interface Secrets {
  readonly isEmpty: boolean;
  /** Makes every text and number in `value` a secret from here on, in each of its written forms. */
  note(value: Json, noting?: Noting): void;
  /** The text with `[secret]` in place of each secret. */
  hide(text: string): string;
  /** As {@link hide}, and also hides the possible beginning of a secret at the end of a text that was cut off. */
  hideCut(text: string): string;
  /** The value with `[secret]` in place of each secret. */
  hideIn(value: Json): Json;
  /** True if the value contains a secret that {@link seal} would seal. */
  isIn(value: Json): boolean;
  /** The value with each secret sealed, in its place within the text. */
  seal(value: Json, sealer: Pick<Sealer, "seal">): Json;
  /** As {@link seal}, without the secrets from sensitive results: for payloads that are also sealed as a whole. */
  sealGiven(value: Json, sealer: Pick<Sealer, "seal">): Json;
}

/** Secrets by origin. */
interface Indexes {
  all: SecretIndex;
  /** Those of credentials and the keychain. */
  given: SecretIndex;
  /** The noted texts, in their original form: the same secret is noted often, and its variants are made once. */
  noted: Set<string>;
}

/** An empty set of secrets. */
export function createSecrets(): Secrets {
  /** Created with the first secret: most commands have none. */
  let indexes: Indexes | undefined;
  const note = (value: Json, noting: Noting = {}): void => {
    indexes ??= { all: createSecretIndex(), given: createSecretIndex(), noted: new Set() };
    addTo(indexes, value, noting);
  };
  const hide = (text: string) =>
    indexes === undefined ? text : replaced(text, indexes.all, "shown", () => SECRET_MASK);
  return {
    get isEmpty() {
      return indexes === undefined || indexes.all.size === 0;
    },
    note,
    hide,
    hideCut(text) {
      const begun = indexes?.all.begunAt(text) ?? -1;
      return begun < 0 ? hide(text) : hide(text.slice(0, begun)) + SECRET_MASK;
    },
    hideIn: (value) => (indexes === undefined ? value : replacedIn(value, indexes.all, "shown", () => SECRET_MASK)),
    isIn(value) {
      if (indexes === undefined) return false;
      const { all } = indexes;
      return someJson(value, (leaf) =>
        typeof leaf === "string" ? all.find(leaf, "passed").length > 0 : all.has(String(leaf), "passed"),
      );
    },
    seal: (value, { seal }) => (indexes === undefined ? value : replacedIn(value, indexes.all, "passed", seal)),
    sealGiven: (value, { seal }) => (indexes === undefined ? value : replacedIn(value, indexes.given, "passed", seal)),
  };
}

function addTo({ all, given, noted }: Indexes, value: Json, noting: Noting): void {
  const isSensitive = noting.isSensitive === true;
  eachSecret(value, noting, (secret, isNumber) => {
    const name = `${isSensitive ? "sensitive" : "given"} ${isNumber ? "number" : "text"} ${secret}`;
    if (noted.has(name)) return false;
    noted.add(name);
    const variants = isNumber ? [secret] : isSensitive ? commonVariantsOf(secret) : variantsOf(secret);
    const kind = secret.length < SEALED_CHARS_MIN ? "word" : isNumber ? "number" : "text";
    for (const variant of variants) {
      all.add(variant, kind);
      if (!isSensitive) given.add(variant, kind);
    }
    return true;
  });
}

/** The text with each secret in it replaced. */
function replaced(text: string, index: SecretIndex, looking: Looking, by: (secret: string) => string): string {
  const found = index.find(text, looking);
  if (found.length === 0) return text;
  let result = "";
  let last = 0;
  for (const [from, to] of found) {
    result += text.slice(last, from) + by(text.slice(from, to));
    last = to;
  }
  return result + text.slice(last);
}

/** Replaces secrets in all texts of a value, and numbers that are secrets. */
function replacedIn(value: Json, index: SecretIndex, looking: Looking, by: Sealer["seal"]): Json {
  return mapJson(value, (leaf) => {
    if (typeof leaf === "string") return replaced(leaf, index, looking, by);
    return index.has(String(leaf), looking) ? by(leaf) : leaf;
  });
}

/**
 * Shortest text of a sensitive result that counts as a secret. Shorter ones are not sealed where a later step reports them. The
 * result itself is always sealed; but words such as `ok` and `granted` occur in many results, and arcs must be able to read them.
 */
export const SENSITIVE = { charsMin: 8, isSensitive: true } as const;

/** True for a value that may contain something sealed. */
export function mayBeSealed(value: Json): boolean {
  return someJson(value, (leaf) => typeof leaf === "string" && mayHoldSealed(leaf), true);
}

/**
 * The value with every sealed part opened and noted: it becomes a secret of the command that opens it. A part that does not
 * open stays as it is, unless `lost` returns a replacement because it should have opened.
 */
export function openSealed(
  value: Json,
  sealer: Pick<Sealer, "open">,
  secrets: Pick<Secrets, "note">,
  lost?: (sealed: string) => Json | undefined,
): Json {
  const open = (sealed: string): Json => {
    const opened = sealer.open(sealed);
    if (opened === undefined) return sealed;
    if (opened.kind === "result") return openSealed(noteSensitive(opened.json, secrets), sealer, secrets, lost);
    // If a text of a sensitive result contained a sealed text, it was sealed a second time on its way.
    const whole = openSealed(opened.value, sealer, secrets, lost);
    secrets.note(whole);
    return whole;
  };
  const openLeaf = (leaf: string | number): Json => {
    if (typeof leaf === "number" || !mayHoldSealed(leaf)) return leaf;
    if (lost !== undefined) {
      for (const [sealed] of leaf.matchAll(SEALED)) {
        const instead = lost(sealed);
        if (instead !== undefined) return instead;
      }
    }
    if (isOneSealed(leaf)) return open(leaf);
    return leaf.replace(SEALED, (sealed) => {
      const opened = sealer.open(sealed);
      return opened?.kind === "value" ? String(open(sealed)) : sealed;
    });
  };
  // Keys are not sealed now, but an earlier version may have sealed them.
  return mapJson(value, openLeaf, openLeaf);
}

/** True for a text that may have been sealed as a whole. */
function isOneSealed(text: string): boolean {
  // Only the last bracket opens: an author's `[sealed:` before a sealed text is not part of it.
  return text.startsWith("[sealed:") && text.indexOf("]") === text.length - 1 && text.lastIndexOf("[") === 0;
}

function noteSensitive(json: string, secrets: Pick<Secrets, "note">): Json {
  const data = JSON.parse(json) as Json;
  secrets.note(data, SENSITIVE);
  return data;
}
