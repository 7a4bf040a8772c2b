import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import { FlowError } from "../../schema/words/errors.ts";

/**
 * Encryption at rest: AES-256-GCM with a data key per record, wrapped by a named key. The text contains the key's name,
 * so that several are in use while they are changed.
 */
export interface KeyRing {
  /** Id of the key that encrypts. */
  readonly current: string;
  /** Ids of all keys that decrypt, the current one first. */
  readonly ids: readonly string[];
  /** The envelope of a text or of bytes. `bound` is authenticated and must be given again: table, name and id. */
  encrypt(plain: string | Uint8Array, bound: string): string;
  /** Throws `FlowError` ENCRYPTION: no envelope, a key that is not in the ring, another key or `bound`, a changed byte. */
  decrypt(envelope: string, bound: string): Buffer;
  /** Id of the key that an envelope was made with; undefined for a text that is no envelope. */
  keyIdOf(envelope: string): string | undefined;
  /** 32 bytes of a key for one purpose (HKDF-SHA256). Throws `FlowError` ENCRYPTION for a key that is not in the ring. */
  derive(keyId: string, purpose: string): Buffer;
}

/** A named key of 32 bytes. */
export interface NamedKey {
  id: string;
  key: Uint8Array;
}

const CIPHER = "aes-256-gcm";
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** `flow1.<key id>.<wrapped data key>.<data>`; the parts are nonce, ciphertext and tag. Key ids have no dot. */
const ENVELOPE = /^flow1\.([\w-]{1,64})\.([\w-]+)\.([\w-]+)$/;
/** What the key of the ring is used for here; `derive` gives independent ones for everything else. */
const WRAPPING = "flow envelope";

/** A ring of these keys: the first encrypts, all decrypt. They are checked already (`parseKeys`): one at least, each id once. */
export function createKeyRing(keys: readonly [NamedKey, ...NamedKey[]]): KeyRing {
  const ring = new Map(keys.map(({ id, key }) => [id, Buffer.from(key)]));
  const wrapping = new Map<string, Buffer>();
  const derive = (keyId: string, purpose: string) => {
    const key = ring.get(keyId);
    if (key === undefined) throw unknownKey(keyId, [...ring.keys()]);
    return Buffer.from(hkdfSync("sha256", key, Buffer.alloc(0), purpose, KEY_BYTES));
  };
  const wrappingKey = (keyId: string) => {
    const known = wrapping.get(keyId) ?? derive(keyId, WRAPPING);
    wrapping.set(keyId, known);
    return known;
  };
  const current = keys[0].id;
  return Object.freeze({
    current,
    ids: Object.freeze([...ring.keys()]),
    encrypt(plain, bound) {
      const dataKey = randomBytes(KEY_BYTES);
      const wrapped = seal(wrappingKey(current), dataKey, wrapBound(current, bound));
      const data = seal(dataKey, typeof plain === "string" ? Buffer.from(plain, "utf8") : plain, bound);
      dataKey.fill(0);
      return `flow1.${current}.${wrapped.toString("base64url")}.${data.toString("base64url")}`;
    },
    decrypt(envelope, bound) {
      const [, keyId, wrapped, data] = ENVELOPE.exec(envelope) ?? [];
      if (keyId === undefined || wrapped === undefined || data === undefined) throw damaged("it is no envelope");
      const key = wrappingKey(keyId);
      const dataKey = open(key, Buffer.from(wrapped, "base64url"), wrapBound(keyId, bound));
      if (dataKey?.length !== KEY_BYTES) {
        throw damaged(
          `the key named '${keyId}' differs from the one used then, or the text was changed or belongs to another row`,
        );
      }
      const plain = open(dataKey, Buffer.from(data, "base64url"), bound);
      dataKey.fill(0);
      if (plain === undefined) throw damaged("the text was changed");
      return plain;
    },
    keyIdOf: (envelope) => ENVELOPE.exec(envelope)?.[1],
    derive,
  } satisfies KeyRing);
}

/** The key's id is authenticated with the row, so that no envelope can be relabelled. */
function wrapBound(keyId: string, bound: string): string {
  return `${keyId}\u0000${bound}`;
}

/** Nonce, ciphertext and tag. A data key encrypts once, and a wrapping key far less than 2^32 times: random nonces do. */
function seal(key: Buffer, plain: Uint8Array, bound: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(bound, "utf8"));
  return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

/** Undefined when the key or `bound` is not the one, or a byte was changed. */
function open(key: Buffer, sealed: Buffer, bound: string): Buffer | undefined {
  if (sealed.length < NONCE_BYTES + TAG_BYTES) return undefined;
  const nonce = sealed.subarray(0, NONCE_BYTES);
  const end = sealed.length - TAG_BYTES;
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(bound, "utf8"))
    .setAuthTag(sealed.subarray(end));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, end)), decipher.final()]);
  } catch {
    // Node gives no further detail, and its message names nothing of flow.
    return undefined;
  }
}

function unknownKey(keyId: string, known: readonly string[]): FlowError {
  const why = `This was encrypted with the key '${keyId}', and the server has ${known.join(", ")}`;
  return new FlowError("ENCRYPTION", `${why}. Add that key to FLOW_ENCRYPTION_KEYS, after the first one, and restart`);
}

function damaged(why: string): FlowError {
  const next = "Check FLOW_ENCRYPTION_KEYS, or store the value again";
  return new FlowError("ENCRYPTION", `What is stored cannot be decrypted: ${why}. ${next}`);
}
