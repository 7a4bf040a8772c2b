import { FlowError } from "../../schema/words/errors.ts";
import type { NamedKey } from "./key-ring.ts";

const KEY_BYTES = 32;
/** A random key has about 30 different bytes; fewer than this many happen to less than one in 10^20. */
const DISTINCT_BYTES_MIN = 16;
const HOW = "make one with: openssl rand -base64 32";

/**
 * Parses encryption keys: `<id>:<base64 of 32 bytes>`, comma-separated or one per line; lines that begin with # are ignored.
 * The first one encrypts. `place` says where they were read. Throws `FlowError` INVALID_SETTING with every problem, without
 * showing a key: no keys, a wrong form, a key that is too short or too long, one that was clearly not drawn at random, a
 * duplicate id or key.
 */
export function parseKeys(text: string, place: string): [NamedKey, ...NamedKey[]] {
  const entries = text
    .split(/[,\n]/)
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "" && !entry.startsWith("#"));
  const problems: string[] = [];
  const keys: NamedKey[] = [];
  entries.forEach((entry, index) => {
    const parsed = parseKey(entry, keys);
    if (typeof parsed === "string") problems.push(`key ${index + 1} ${parsed}`);
    else keys.push(parsed);
  });
  const [first, ...rest] = keys;
  if (problems.length > 0) throw new FlowError("INVALID_SETTING", `${place}: ${problems.join("; ")}; ${HOW}`);
  if (first !== undefined) return [first, ...rest];
  throw new FlowError("INVALID_SETTING", `${place} holds no key; write <id>:<key>, and ${HOW}`);
}

/** The key, or what is wrong with it. */
function parseKey(entry: string, before: readonly NamedKey[]): NamedKey | string {
  const separator = entry.indexOf(":");
  if (separator < 0) return "is not of the form <id>:<base64>";
  const id = entry.slice(0, separator).trim();
  if (!/^[\w-]{1,64}$/.test(id)) return "needs an id of 1 to 64 letters, digits, - or _ before its colon";
  const base64 = entry.slice(separator + 1).trim();
  if (!/^[\w+/-]*={0,2}$/.test(base64)) return `('${id}') is not base64`;
  // Node takes both alphabets, padded or not.
  const key = Buffer.from(base64, "base64");
  if (key.length !== KEY_BYTES) return `('${id}') has ${key.length} bytes, not ${KEY_BYTES}`;
  if (isGuessable(key)) return `('${id}') is no random key but a default, a text or a pattern`;
  if (before.some((other) => other.id === id)) return `has the id '${id}' of an earlier key`;
  const same = before.find((other) => key.equals(other.key));
  return same === undefined ? { id, key } : `('${id}') is the same key as '${same.id}'`;
}

/** All zero, a repeated byte or word, bytes that count up, or 32 readable characters. */
function isGuessable(key: Buffer): boolean {
  const steps = new Set(
    key.map((byte, index) => (index === 0 ? 0 : (byte - (key[index - 1] ?? 0)) & 0xff)).subarray(1),
  );
  const isText = key.every((byte) => byte >= 0x20 && byte < 0x7f);
  return new Set(key).size < DISTINCT_BYTES_MIN || steps.size === 1 || isText;
}
