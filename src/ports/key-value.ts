/** The largest value: 1 MiB, which is also the default of `kv_max_bytes` (interface specification, result storage). */
export const VALUE_BYTES_MAX = 1_048_576;

/** The longest key, in bytes of UTF-8. NATS bounds a subject, which a key becomes a part of. */
export const KEY_BYTES_MAX = 1_024;

/** A value as it was found. */
export interface KeyValueEntry {
  value: Uint8Array;
  /** Grows with each write of the key, also across its deletion. */
  revision: number;
}

/** How long a value lives. */
export interface KeyValueTtl {
  /** Milliseconds until it is gone. Default: as long as its bucket keeps it. */
  ttlMs?: number;
}

/**
 * Values by bucket and key, for what may be lost: sessions, small results. A bucket is there as soon as it is named: 1–64
 * letters, digits, `-` and `_`. A key is any text that PostgreSQL can hold: not empty, no NUL, no half of a character, at most
 * {@link KEY_BYTES_MAX} bytes.
 *
 * Every call throws `FlowError` INVALID_INPUT for a bucket, key or `ttlMs` that cannot be, TOO_LARGE for a value beyond
 * {@link VALUE_BYTES_MAX}, and UNAVAILABLE while the store cannot be reached.
 */
export interface KeyValueStore {
  /** The live value, or undefined when there is none, or none any more. */
  get(bucket: string, key: string): Promise<KeyValueEntry | undefined>;
  /** Writes whatever is there, and gives the new revision. The time to live begins anew. */
  put(bucket: string, key: string, value: Uint8Array, ttl?: KeyValueTtl): Promise<number>;
  /**
   * Compare and set: writes when the live value has this revision, or for `revision` 0 when there is none. Gives the new
   * revision, or undefined when another one was there, and then nothing is written.
   */
  update(
    bucket: string,
    key: string,
    value: Uint8Array,
    expected: KeyValueTtl & { revision: number },
  ): Promise<number | undefined>;
  /** Removes the value; nothing happens when there is none. */
  delete(bucket: string, key: string): Promise<void>;
}
