import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from "node:crypto";
import type { Opened, Sealer } from "../../schema/words/sealed.ts";
import type { KeyRing, NamedKey } from "./key-ring.ts";

const CIPHER = "aes-256-gcm";
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Values are padded with spaces to a multiple of this: the length of a sealed text does not reveal a password's length. */
const BLOCK_BYTES = 16;
const TOKEN = /^\[sealed:([\w-]{1,64}):([\w-]+)\]$/;

/** A key's two uses, apart from each other. */
interface Pair {
  encrypt: Buffer;
  nonce: Buffer;
}

/**
 * Seals with the first key and opens with all: AES-256-GCM whose nonce is an HMAC of the text, in the manner of SIV. The nonce
 * is not random because equal texts must give equal tokens: a child that is started again after a crash is known by the hash of
 * its request, results are compared by their sha256, and lists of values are joined by equality. It reveals that two places of
 * one tree hold the same secret, but only to readers of the database. Two different texts share a nonce with a chance of one in
 * 2^96 per pair.
 */
export function createSealer(keys: readonly [NamedKey, ...NamedKey[]]): Sealer {
  const pairs = new Map(
    keys.map(({ id, key }) => [id, { encrypt: derive(key, "encrypt"), nonce: derive(key, "nonce") }]),
  );
  const [{ id: current }] = keys;
  const seal = (plain: Buffer) => {
    const pair = pairs.get(current) as Pair;
    const nonce = createHmac("sha256", pair.nonce).update(plain).digest().subarray(0, NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, pair.encrypt, nonce, { authTagLength: TAG_BYTES }).setAAD(boundTo(current));
    const parts = [nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()];
    return `[sealed:${current}:${Buffer.concat(parts).toString("base64url")}]`;
  };
  return {
    seal: (value) => seal(padded(`v${JSON.stringify(value)}`)),
    sealResult: (json) => seal(padded(`r${json}`)),
    open(sealed) {
      const [, id, text] = TOKEN.exec(sealed) ?? [];
      const pair = id === undefined ? undefined : pairs.get(id);
      if (id === undefined || text === undefined || pair === undefined) return undefined;
      const plain = decrypt(pair.encrypt, Buffer.from(text, "base64url"), boundTo(id));
      return plain === undefined ? undefined : openedOf(plain);
    },
    lostKeyOf(sealed) {
      const [, id, text] = TOKEN.exec(sealed) ?? [];
      if (id === undefined || text === undefined || pairs.has(id)) return undefined;
      // Of an author's text that looks like one the length is another, mostly.
      const bytes = Math.floor((text.length * 3) / 4) - NONCE_BYTES - TAG_BYTES;
      return bytes > 0 && bytes % BLOCK_BYTES === 0 ? id : undefined;
    },
  };
}

/** The keys of a tree of executions, by the id of its root: one for each key of the ring, the current one first. */
export function sealingKeys(ring: KeyRing, rootExecutionId: string): [NamedKey, ...NamedKey[]] {
  const keyOf = (id: string) => ({ id, key: ring.derive(id, `flow sealing:${rootExecutionId}`) });
  return [keyOf(ring.current), ...ring.ids.filter((id) => id !== ring.current).map(keyOf)];
}

function derive(key: Uint8Array, use: string): Buffer {
  return Buffer.from(hkdfSync("sha256", key, Buffer.alloc(0), `flow sealed text: ${use}`, KEY_BYTES));
}

/** The key's id is authenticated: no token can be relabelled. */
function boundTo(id: string): Buffer {
  return Buffer.from(`flow sealed text\u0000${id}`);
}

/** JSON does not mind spaces behind it. */
function padded(text: string): Buffer {
  const bytes = Buffer.byteLength(text);
  return Buffer.from(text + " ".repeat(Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES - bytes));
}

function decrypt(key: Buffer, sealed: Buffer, bound: Buffer): Buffer | undefined {
  if (sealed.length < NONCE_BYTES + TAG_BYTES) return undefined;
  const end = sealed.length - TAG_BYTES;
  const decipher = createDecipheriv(CIPHER, key, sealed.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
    .setAAD(bound)
    .setAuthTag(sealed.subarray(end));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, end)), decipher.final()]);
  } catch {
    return undefined;
  }
}

/** The decrypted text was written by `createSealer`: its form is known. */
function openedOf(plain: Buffer): Opened | undefined {
  const text = plain.toString("utf8", 1);
  const kind = String.fromCharCode(plain[0] ?? 0);
  if (kind === "r") return { kind: "result", json: text.trimEnd() };
  return kind === "v" ? { kind: "value", value: JSON.parse(text) as string | number } : undefined;
}
