import { promisify } from "node:util";
import { gunzip } from "node:zlib";
import type { AttachedPayload } from "../../ports/execution-store.ts";
import type { ResultCompression } from "../../schema/api/results.ts";
import type { Json } from "../../schema/words/json.ts";
import type { ResultsObserver } from "./observer.ts";
import { takeBytes } from "./receive-payload.ts";
import { type PayloadStores, type TierLimits, tiersFor } from "./storage-tiers.ts";

/** A payload that came with a report. */
export interface ResultAttachment {
  ref: string;
  /** JSON text in UTF-8. */
  payload: Buffer;
  /** Default: what is short and shrinks well is compressed. */
  compression?: ResultCompression;
  ttlMs?: number;
}

/** A payload that is ready to be written with the event that it is the result of. */
export type ReadyPayload = AttachedPayload;

/** Large results that come with the report of their task. */
export interface Attachments {
  /**
   * Makes a worker's payload ready to be written with the event that it is the result of. Undefined where a payload of that length is
   * kept elsewhere than in a row: it has to be uploaded. Throws `FlowError` INVALID_INPUT and TOO_LARGE as an upload does.
   */
  attachment(attached: ResultAttachment): Promise<ReadyPayload | undefined>;
  /** A payload of {@link Attachments.attachment} was written. */
  attached(payload: ReadyPayload): void;
  /** The value of a payload before it is written. Throws as `load` of the results does. */
  attachedValue(payload: ReadyPayload): Promise<Json>;
}

/** What they are made of. */
export interface AttachmentsDeps {
  stores: PayloadStores;
  limits: TierLimits;
  /** Longest payload, bytes. */
  bytesMax: number;
  /** Default time to live. */
  ttlMs: number;
  now(): number;
  observer: ResultsObserver;
  /** The value of a stored text. */
  jsonOf(ref: string, text: string): Promise<Json>;
}

/** Those that are kept in rows. */
export function attachments(deps: AttachmentsDeps): Attachments {
  const { stores, limits, bytesMax, observer, jsonOf } = deps;
  return {
    async attachment({ ref, payload, ttlMs = deps.ttlMs, compression }) {
      const [tier] = tiersFor("auto", payload.length, stores, limits);
      if (tier !== "kv" || stores.has("kv")) return undefined;
      const taken = await takeBytes(payload, { bytesMax, isJson: true, compression });
      const { buffer, bytes, sha256, isSealed } = taken;
      if (buffer === undefined) return undefined;
      // Of this process and not shared, as all that came over a socket.
      const stored = buffer as Buffer<ArrayBuffer>;
      const about = { ref, bytes, sha256, isSealed, compression: taken.compression };
      return { ...about, payload: stored, expiresAt: deps.now() + ttlMs };
    },
    attached: ({ bytes }) => observer.stored("kv", bytes),
    async attachedValue({ ref, payload, compression }) {
      const bytes = compression === null ? payload : await promisify(gunzip)(payload);
      return await jsonOf(ref, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8"));
    },
  };
}
