import { isJsonObject, type Json, own } from "../../schema/words/json.ts";
import { isDeeper } from "../../schema/words/json-depth.ts";
import { SECRET_CHARS_MIN } from "./secret-index.ts";
import { basicVariant } from "./secret-variants.ts";

/** Which parts of a value are secrets. */
export interface Noting {
  /** Values shorter than this are not treated as secrets. Default and minimum: 4. */
  charsMin?: number;
  /** The value comes from a sensitive result. */
  isSensitive?: true;
  /** Fields with these names are never secrets, at any depth. */
  except?: RegExp;
  /** Those of these fields that hold addresses: a password within an address is a secret. */
  addresses?: RegExp;
}

/**
 * Passes every secret text and number of `value` to `tell`, once for each place; `tell` returns whether it is new. Secrets
 * within a new one follow it.
 */
export function eachSecret(value: Json, noting: Noting, tell: (secret: string, isNumber: boolean) => boolean): void {
  const { charsMin = SECRET_CHARS_MIN, except, addresses } = noting;
  const look = (found: Json): void => {
    if (typeof found === "string") {
      if (found.length >= charsMin && tell(found, false)) for (const part of partsOf(found)) look(part);
    } else if (typeof found === "number") {
      if (digitsOf(found) >= charsMin) tell(String(found), true);
    } else if (Array.isArray(found)) for (const item of found) look(item);
    else if (isJsonObject(found)) lookIntoFields(found);
  };
  const lookIntoFields = (fields: { [name: string]: Json }) => {
    for (const name of Object.keys(fields)) {
      const field = own(fields, name) as Json;
      if (except?.test(name) !== true) look(field);
      else if (typeof field === "string" && addresses?.test(name) === true) look(passwordsOf(field));
    }
    for (const [user, password] of PAIRS) {
      const [name, secret] = [own(fields, user), own(fields, password)];
      if (typeof name === "string" && typeof secret === "string") tell(basicVariant(name, secret), false);
    }
  };
  look(value);
}

/** Fields whose values are used together in `Authorization: Basic`. */
const PAIRS = [
  ["username", "password"],
  ["user", "password"],
  ["db_user", "db_password"],
  ["client_id", "client_secret"],
] as const;

function digitsOf(value: number): number {
  return String(value).replace(/\D/g, "").length;
}

/** Longest text that is scanned for secrets. */
const PARTED_CHARS_MAX = 65_536;

/** The parts of a text that are secrets by themselves: the password of an address, the fields of a JSON text. */
function partsOf(text: string): Json[] {
  const passwords = passwordsOf(text);
  if (passwords.length > 0) return passwords;
  if (text.length > PARTED_CHARS_MAX || !/^\s*[{[]/.test(text) || isDeeper(text)) return [];
  try {
    return [JSON.parse(text) as Json];
  } catch {
    return [];
  }
}

/** The password of an address, as written there and decoded. */
function passwordsOf(address: string): string[] {
  const password = /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@]*?:([^\s/?#]+)@/i.exec(address)?.[1];
  return password === undefined ? [] : [password, decoded(password)];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
