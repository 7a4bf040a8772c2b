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
 * Values by bucket and key, for data that may be lost: sessions, small results. A bucket exists as soon as it is named: 1–64
 * letters, digits, `-` and `_`. A key is any text that PostgreSQL can hold: not empty, no NUL, no lone surrogate, at most
 * {@link KEY_BYTES_MAX} bytes. Every call throws `FlowError` INVALID_INPUT for an invalid bucket, key or `ttlMs`, TOO_LARGE for
 * a value beyond {@link VALUE_BYTES_MAX}, and UNAVAILABLE while the store cannot be reached.
 */
export interface KeyValueStore {
  /** The live value, or undefined if it is missing or has expired. */
  get(bucket: string, key: string): Promise<KeyValueEntry | undefined>;
  /** Writes whatever is there, and gives the new revision. The time to live begins anew. */
  put(bucket: string, key: string, value: Uint8Array, ttl?: KeyValueTtl): Promise<number>;
  /**
   * Compare and set: writes if the live value has this revision, or for `revision` 0 if there is no live value. Returns the new
   * revision, or undefined if another revision exists, and then nothing is written.
   */
  update(
    bucket: string,
    key: string,
    value: Uint8Array,
    expected: KeyValueTtl & { revision: number },
  ): Promise<number | undefined>;
  /** Removes the value, if it exists. */
  delete(bucket: string, key: string): Promise<void>;
}
