import type { Json } from "../../schema/words/json.ts";
import { SECRET_MASK, type Sealer } from "../../schema/words/sealed.ts";
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
