import { ErrorCode, type KV, type NatsConnection, NatsError, StorageType } from "nats";
import { decodeEnvelope, encodeEnvelope } from "../../platform/nats/envelope.ts";
import { encodeNatsKey } from "../../platform/nats/key.ts";
import { KEY_BYTES_MAX, type KeyValueStore, VALUE_BYTES_MAX } from "../../ports/key-value.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import type { NatsLink } from "./connection.ts";

/** What {@link createNatsKeyValue} needs. */
export interface NatsKeyValueDeps {
  /** The caller closes it. */
  link: NatsLink;
  /** Milliseconds since 1970. Expiry is by the clocks of the servers: they must agree to within what a time to live may err. */
  now: () => number;
  /** How long a bucket keeps a value without a time to live, or with a longer one. Default 31 days. */
  maxAgeMs?: number;
}

const MAX_AGE_MS = 31 * 86_400_000;
/** Time that NATS has to answer. */
const ANSWER_MS = 2_000;

/** The longest time to live, ten years: values that stay longer have none. */
const TTL_MAX_MS = 315_360_000_000;

/**
 * Values in key-value buckets of NATS JetStream, one per bucket, made when it is first written or read. A bucket that was wiped
 * is made again.
 */
export function createNatsKeyValue({ link, now, maxAgeMs = MAX_AGE_MS }: NatsKeyValueDeps): KeyValueStore {
  const buckets = new WeakMap<NatsConnection, Map<string, Promise<KV>>>();

  const open = (bucket: string): Promise<KV> => {
    const connection = link.current()?.connection;
    if (connection === undefined) throw unreachable("there is no connection");
    const known = buckets.get(connection) ?? new Map<string, Promise<KV>>();
    buckets.set(connection, known);
    const opened = known.get(bucket) ?? openBucket(connection, bucket, maxAgeMs);
    known.set(bucket, opened);
    return opened;
  };

  const forget = (bucket: string) => {
    const connection = link.current()?.connection;
    if (connection !== undefined) buckets.get(connection)?.delete(bucket);
  };

  /** Tried twice if the bucket has no responder: it may have been deleted meanwhile. */
  const within = async <T>(bucket: string, work: (kv: KV) => Promise<T>): Promise<T> => {
    try {
      return await work(await open(bucket));
    } catch (error) {
      forget(bucket);
      if (!isGone(error)) throw bucketError(error, bucket);
    }
    try {
      return await work(await open(bucket));
    } catch (error) {
      forget(bucket);
      throw bucketError(error, bucket);
    }
  };

  return {
    async get(bucket, key) {
      checkEntry(bucket, key);
      return within(bucket, (kv) => read(kv, key, now()));
    },
    async put(bucket, key, value, { ttlMs } = {}) {
      checkEntry(bucket, key, value, ttlMs);
      const expiresAt = ttlMs === undefined ? undefined : now() + ttlMs;
      await within(bucket, (kv) => kv.put(encodeNatsKey(key), encodeEnvelope({ value, expiresAt })));
    },
    async delete(bucket, key) {
      checkEntry(bucket, key);
      await within(bucket, (kv) => kv.purge(encodeNatsKey(key)));
    },
  };
}

function openBucket(connection: NatsConnection, bucket: string, maxAgeMs: number): Promise<KV> {
  const jetStream = connection.jetstream({ timeout: ANSWER_MS });
  // Not `allow_direct`: any replica may answer such a read, even one that has not seen a session's end.
  return jetStream.views.kv(bucket, {
    history: 1,
    storage: StorageType.File,
    ttl: maxAgeMs,
    allow_direct: false,
  });
}

/** The live value: expired and deleted ones are undefined. */
async function read(kv: KV, key: string, now: number): Promise<Uint8Array | undefined> {
  const found = await kv.get(encodeNatsKey(key));
  if (found === null || found.operation !== "PUT") return undefined;
  const { value, expiresAt } = decodeEnvelope(found.value);
  return expiresAt !== undefined && expiresAt <= now ? undefined : value;
}

/** The bucket accepts no writes, or its stream is missing. */
function isGone(error: unknown): boolean {
  return error instanceof NatsError && (error.code === ErrorCode.NoResponders || error.message === "stream not found");
}

function bucketError(error: unknown, bucket: string): FlowError {
  if (error instanceof FlowError) return error;
  if (error instanceof NatsError && error.code === ErrorCode.MaxPayloadExceeded) {
    const message = `Key-value bucket '${bucket}': the broker takes no message of this size`;
    return new FlowError("TOO_LARGE", `${message}. Raise its max_payload to 2 MB`, { cause: error });
  }
  return unreachable(messageOf(error), error);
}

function unreachable(why: string, cause?: unknown): FlowError {
  const message = `The broker's key-value store cannot be reached at the moment: ${why}. Try again in a few seconds`;
  return new FlowError("UNAVAILABLE", message, { cause });
}

/** Refuses what a bucket cannot hold. The key itself stays out of the messages: it may be a session. */
function checkEntry(bucket: string, key: string, value?: Uint8Array, ttlMs?: number): void {
  const refuse = (why: string) => {
    throw new FlowError("INVALID_INPUT", `Key-value bucket '${bucket}': ${why}`);
  };
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(bucket)) refuse("its name must be 1 to 64 letters, digits, '-' or '_'");
  const bytes = Buffer.from(key);
  // Half a character is lost on the way to bytes: two keys would become one.
  const isText = key !== "" && !key.includes("\0") && bytes.toString() === key;
  if (!isText) refuse("a key must be Unicode text, not empty, without NUL");
  if (bytes.byteLength > KEY_BYTES_MAX) refuse(`a key may have at most ${KEY_BYTES_MAX} bytes`);
  if (ttlMs !== undefined && !(ttlMs > 0 && ttlMs <= TTL_MAX_MS)) refuse(`ttlMs must be from 1 to ${TTL_MAX_MS}`);
  if (value !== undefined && value.byteLength > VALUE_BYTES_MAX) {
    const why = `a value of ${value.byteLength} bytes; at most ${VALUE_BYTES_MAX} are kept`;
    throw new FlowError("TOO_LARGE", `Key-value bucket '${bucket}': ${why}`);
  }
}
