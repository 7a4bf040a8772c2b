import { type KV, type KvEntry, type NatsConnection, StorageType } from "nats";
import { decodeEnvelope, encodeEnvelope } from "../../platform/nats/envelope.ts";
import { decodeNatsKey, encodeNatsKey } from "../../platform/nats/key.ts";
import { isBucketMissing, isBucketTaken, isUnanswered } from "./errors.ts";

/** Time that NATS has to answer one request, in milliseconds. */
const ANSWER_MS = 10_000;
/** Most keys that one listing may give: a bucket may have millions, and a result is held in memory. */
export const KEYS_MAX = 100_000;

/** A value as it stands in a bucket. */
export interface BucketValue {
  bytes: Uint8Array;
  /** Grows with each write to the bucket. */
  revision: number;
}

/** The live value, or undefined: no such bucket, no such key, deleted, or its time to live has passed by `now`. */
export async function getValue(
  connection: NatsConnection,
  bucket: string,
  key: string,
  now: number,
): Promise<BucketValue | undefined> {
  const kv = await bind(connection, bucket);
  const found = await found404(kv.get(encodeNatsKey(key)));
  if (found === null || found.operation !== "PUT") return undefined;
  const { value, expiresAt } = decodeEnvelope(found.value);
  return expiresAt !== undefined && expiresAt <= now ? undefined : { bytes: value, revision: found.revision };
}

/**
 * Writes the value and returns its revision; creates the bucket if it is missing. The expiry time precedes the value, as in the
 * service's own buckets: NATS before 2.11 has no time to live for a single key.
 */
export async function putValue(
  connection: NatsConnection,
  bucket: string,
  key: string,
  value: { bytes: Uint8Array; expiresAt: number | undefined },
): Promise<number> {
  const data = encodeEnvelope({ value: value.bytes, expiresAt: value.expiresAt });
  try {
    return await (await bind(connection, bucket)).put(encodeNatsKey(key), data);
  } catch (error) {
    if (!isUnanswered(error) && !isBucketMissing(error)) throw error;
  }
  // Not before the write was refused: looking first would cost every put a request.
  const made = await makeBucket(connection, bucket);
  return await made.put(encodeNatsKey(key), data);
}

/** Deletes the key and returns the revision of the deleted value, or undefined if the key was not there. */
export async function deleteValue(
  connection: NatsConnection,
  bucket: string,
  key: string,
  now: number,
): Promise<number | undefined> {
  const found = await getValue(connection, bucket, key, now);
  if (found === undefined) return undefined;
  await (await bind(connection, bucket)).delete(encodeNatsKey(key));
  return found.revision;
}

/**
 * The bucket's keys, sorted; undefined where there is no such bucket, "too many" beyond {@link KEYS_MAX}. `pattern` chooses
 * among them as NATS subjects do: `*` for one part between dots, `>` for all that follows. A key whose time to live has
 * passed is listed until it is written or deleted: that stands in its value, which is not read.
 */
export async function listKeys(
  connection: NatsConnection,
  bucket: string,
  pattern: string,
): Promise<string[] | undefined | "too many"> {
  const kv = await bind(connection, bucket);
  const keys: string[] = [];
  try {
    for await (const key of await kv.keys(pattern)) {
      keys.push(decodeNatsKey(key));
      if (keys.length > KEYS_MAX) return "too many";
    }
  } catch (error) {
    if (isBucketMissing(error)) return undefined;
    throw error;
  }
  return keys.sort();
}

/** Another client may create it at the same moment with other settings: that is good enough. */
async function makeBucket(connection: NatsConnection, bucket: string): Promise<KV> {
  try {
    return await jetStream(connection).views.kv(bucket, {
      history: 1,
      storage: StorageType.File,
      allow_direct: false,
    });
  } catch (error) {
    if (isBucketTaken(error)) return await bind(connection, bucket);
    throw error;
  }
}

function jetStream(connection: NatsConnection) {
  // No look at the account first: it would cost every operation a request.
  return connection.jetstream({ timeout: ANSWER_MS, checkAPI: false });
}

/** By the stream's leader. Not `allow_direct`: any replica may answer such a read, even one that lags behind. */
function bind(connection: NatsConnection, bucket: string): Promise<KV> {
  return jetStream(connection).views.kv(bucket, { bindOnly: true, allow_direct: false });
}

/** Null for a bucket that is not there, as for a key. */
async function found404(reading: Promise<KvEntry | null>): Promise<KvEntry | null> {
  try {
    return await reading;
  } catch (error) {
    if (isBucketMissing(error)) return null;
    throw error;
  }
}
