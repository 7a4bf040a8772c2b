import { mapJson } from "../../../engine/sealing/map-json.ts";
import { isSecretText, looksSecret } from "../../../language/template/render-known.ts";
import { Withheld } from "../../../language/views/withheld.ts";
import { isJsonObject, type Json, own, setOwn } from "../../../schema/words/json.ts";
import type { StoredResult } from "../../../schema/words/result.ts";
import { maskSealed, mayHoldSealed, SECRET_MASK } from "../../../schema/words/sealed.ts";

/** Stands in expressions for a secret: nothing can be derived from it, and nothing of it is shown. */
export const HIDDEN: Json = new Withheld("secret") as unknown as Json;

/** Stands in expressions for a value that is not known here, with what it waits for. */
export function notKnown(...waitsFor: string[]): Json {
  return new Withheld(waitsFor) as unknown as Json;
}

/** The value for a scope: each text that contains something sealed is withheld. Nothing is opened. */
export function withoutSealed<T extends Json | StoredResult>(value: T): T {
  const hide = (leaf: string | number): Json => (typeof leaf === "string" && mayHoldSealed(leaf) ? HIDDEN : leaf);
  return mapJson(value as Json, hide) as T;
}

/** As {@link withoutSealed}, for callers' inputs: texts under keys such as `password` are withheld too, as a precaution. */
export function withoutSecrets<T extends Json>(value: T): T {
  const hide = (part: Json): Json => {
    if (Array.isArray(part)) return part.map(hide);
    if (!isJsonObject(part)) return part;
    const map = {};
    for (const key of Object.keys(part)) {
      const inner = own(part, key) as Json;
      setOwn(map, key, isSecretText(key, inner) ? HIDDEN : hide(inner));
    }
    return map;
  };
  return hide(withoutSealed(value)) as T;
}

/** A value with its templates as written, without literal passwords. */
export function maskedSource(source: Json): Json {
  return masked(source, "", [], looksSecret);
}

/** The value for people, with `[secret]` in place of the same texts; `secret` receives their paths. */
export function masked(
  value: Json,
  path: string,
  secret: string[],
  isHidden = isSecretText as typeof looksSecret,
): Json {
  if (typeof value === "string") {
    if (mayHoldSealed(value)) secret.push(path);
    return maskSealed(value);
  }
  if (Array.isArray(value)) return value.map((item, index) => masked(item, `${path}[${index}]`, secret, isHidden));
  if (!isJsonObject(value)) return value;
  const map = {};
  for (const key of Object.keys(value)) {
    const at = path === "" ? key : `${path}.${key}`;
    const inner = own(value, key) as Json;
    const isSecret = isHidden(key, inner);
    if (isSecret) secret.push(at);
    setOwn(map, key, isSecret ? SECRET_MASK : masked(inner, at, secret, isHidden));
  }
  return map;
}
