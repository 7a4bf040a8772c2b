/** The largest value: 1 MiB, which is also the default of `kv_max_bytes` (interface specification, result storage). */
export const VALUE_BYTES_MAX = 1_048_576;

/** The longest key, in bytes of UTF-8. NATS bounds a subject, which a key becomes a part of. */
export const KEY_BYTES_MAX = 1_024;

/** How long a value lives. */
export interface KeyValueTtl {
  /** Milliseconds until it is gone. Default: as long as its bucket keeps it. */
  ttlMs?: number;
}

/**
 * The broker's values by bucket and key: cached sessions, small results. A bucket exists as soon as it is named: 1–64 letters,
 * digits, `-` and `_`. A key is Unicode text: not empty, no NUL, no lone surrogate, at most {@link KEY_BYTES_MAX} bytes.
 *
 * Every call throws `FlowError` INVALID_INPUT for a bucket, key or `ttlMs` that is not valid, TOO_LARGE for a value beyond
 * {@link VALUE_BYTES_MAX}, and UNAVAILABLE while the store cannot be reached.
 */
export interface KeyValueStore {
  /** The live value, or undefined if it is missing or has expired. */
  get(bucket: string, key: string): Promise<Uint8Array | undefined>;
  /** Writes the value, also over another. The time to live begins anew. */
  put(bucket: string, key: string, value: Uint8Array, ttl?: KeyValueTtl): Promise<void>;
  /** Removes the value, if it exists. */
  delete(bucket: string, key: string): Promise<void>;
}
