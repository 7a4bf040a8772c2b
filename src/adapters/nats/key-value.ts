import { ErrorCode, type KV, type NatsConnection, NatsError, StorageType } from "nats";
import { decodeEnvelope, encodeEnvelope } from "../../platform/nats/envelope.ts";
import { encodeNatsKey } from "../../platform/nats/key.ts";
import type { KeyValueEntry, KeyValueStore, KeyValueTtl } from "../../ports/key-value.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { checkEntry } from "../key-value-input.ts";
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

/** JetStream's code if a subject's last message is not the expected one. */
const WRONG_LAST_SEQUENCE = 10_071;

/**
 * Values in key-value buckets of NATS JetStream, one per bucket, made when it is first written or read. A bucket that was wiped
 * is made again. Revisions are the bucket's sequence, which begins anew when it is wiped.
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

  const enveloped = (value: Uint8Array, { ttlMs }: KeyValueTtl): Uint8Array =>
    encodeEnvelope({ value, expiresAt: ttlMs === undefined ? undefined : now() + ttlMs });

  return {
    async get(bucket, key) {
      checkEntry(bucket, key);
      const found = await within(bucket, (kv) => read(kv, key, now()));
      return found?.entry;
    },
    async put(bucket, key, value, ttl = {}) {
      checkEntry(bucket, key, value, ttl);
      return within(bucket, (kv) => kv.put(encodeNatsKey(key), enveloped(value, ttl)));
    },
    async update(bucket, key, value, { revision, ...ttl }) {
      checkEntry(bucket, key, value, ttl);
      return within(bucket, async (kv) => {
        const found = await read(kv, key, now());
        if (revision !== (found?.entry?.revision ?? 0)) return undefined;
        // A missing value may have been deleted or have expired: that message must then still be the last.
        return putAfter(kv, key, enveloped(value, ttl), found?.last ?? 0);
      });
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

/** The live entry, if any, and the revision of whatever is there: value, expired value or mark of a deletion. */
async function read(kv: KV, key: string, now: number): Promise<{ entry?: KeyValueEntry; last: number } | undefined> {
  const found = await kv.get(encodeNatsKey(key));
  if (found === null) return undefined;
  const last = found.revision;
  if (found.operation !== "PUT") return { last };
  const { value, expiresAt } = decodeEnvelope(found.value);
  return expiresAt !== undefined && expiresAt <= now ? { last } : { entry: { value, revision: last }, last };
}

async function putAfter(kv: KV, key: string, data: Uint8Array, last: number): Promise<number | undefined> {
  try {
    return await kv.put(encodeNatsKey(key), data, { previousSeq: last });
  } catch (error) {
    if (error instanceof NatsError && error.api_error?.err_code === WRONG_LAST_SEQUENCE) return undefined;
    throw error;
  }
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
