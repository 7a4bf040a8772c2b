import { KEY_BYTES_MAX, type KeyValueTtl, VALUE_BYTES_MAX } from "../ports/key-value.ts";
import { FlowError } from "../schema/words/errors.ts";

/** The longest time to live, ten years: what is to stay longer has none. */
const TTL_MAX_MS = 315_360_000_000;

/**
 * Refuses what not every store can hold, so that all of them refuse the same. The key itself stays out of the messages: it may
 * be a session. Throws `FlowError` INVALID_INPUT, TOO_LARGE.
 */
export function checkEntry(bucket: string, key: string, value?: Uint8Array, ttl: KeyValueTtl = {}): void {
  const refuse = (why: string) => {
    throw new FlowError("INVALID_INPUT", `Key-value bucket '${bucket}': ${why}`);
  };
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(bucket)) refuse("its name must be 1 to 64 letters, digits, '-' or '_'");
  const bytes = Buffer.from(key);
  // Half a character is lost on the way to bytes: two keys would become one.
  const isText = key !== "" && !key.includes("\0") && bytes.toString() === key;
  if (!isText) refuse("a key must be Unicode text, not empty, without NUL");
  if (bytes.byteLength > KEY_BYTES_MAX) refuse(`a key may have at most ${KEY_BYTES_MAX} bytes`);
  const { ttlMs } = ttl;
  if (ttlMs !== undefined && !(ttlMs > 0 && ttlMs <= TTL_MAX_MS)) refuse(`ttlMs must be from 1 to ${TTL_MAX_MS}`);
  if (value !== undefined && value.byteLength > VALUE_BYTES_MAX) {
    const why = `a value of ${value.byteLength} bytes; at most ${VALUE_BYTES_MAX} are kept`;
    throw new FlowError("TOO_LARGE", `Key-value bucket '${bucket}': ${why}`);
  }
}
