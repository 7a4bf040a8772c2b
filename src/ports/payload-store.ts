import type { ResultStoreName } from "../schema/api/results.ts";
import type { JsonObject } from "../schema/words/json.ts";

/** The bytes of a payload as a store is to keep them, compressed or not. They can be read again, for another try. */
export interface PayloadBody {
  readonly bytes: number;
  /** Of these bytes, in hex. */
  readonly sha256: string;
  read(): AsyncIterable<Uint8Array>;
  /** Where the bytes are in a file: gives it away under another path of the same file system, durably. */
  moveTo?(path: string): Promise<void>;
}

/** What a store may want to know of a payload. */
export interface PayloadAbout {
  /** Media type of the stored bytes: `application/gzip` if they are compressed. */
  contentType: string;
  /** Milliseconds until it is gone. Stores that forget by themselves must not do so sooner; none needs to. */
  ttlMs: number;
}

/** A part of a payload: bytes from `start` up to `end`, which is not in it. */
export interface PayloadRange {
  start: number;
  end: number;
}

/** A payload that is being read. To stop early, end the iteration, which closes the connection or file behind it. */
export interface PayloadReading {
  /** Of the whole payload as it is stored, where the store says so at once. */
  bytes: number | undefined;
  body: AsyncIterable<Uint8Array>;
}

/**
 * Stores payloads of results that are too large for the event log (interface specification, Result storage). A payload has a
 * unique name that is never reused, so nothing is ever replaced: the table of results decides which payload is current, not the
 * store. Every call throws `FlowError` UNAVAILABLE while the store cannot be reached or is overloaded (a retry helps), and
 * NOT_STORED with what to fix if the store refuses.
 */
export interface PayloadStore {
  readonly kind: ResultStoreName;
  /** Longest payload as stored, in bytes; absent: any. */
  readonly bytesMax?: number;
  /** It looks into the text, so that it takes no compressed one and nothing but JSON. */
  readonly isPlain?: boolean;
  /**
   * Where a payload of this name will be. It is written down before the payload is, so that no payload is ever unknown. `name`
   * is of letters, digits and `-`; `executionId` may become a part of the place, for people who look there.
   */
  locate(executionId: string, name: string): JsonObject;
  /**
   * Writes the payload durably; returns its location with the store's own fields (`etag`). Throws TOO_LARGE for a payload that
   * the store cannot hold, INVALID_INPUT for a text that it cannot split. The remains of a broken write are removed by {@link
   * remove}.
   */
  write(location: JsonObject, body: PayloadBody, about: PayloadAbout, signal: AbortSignal): Promise<JsonObject>;
  /** The payload or a part of it; undefined when it is not there. */
  read(location: JsonObject, range?: PayloadRange): Promise<PayloadReading | undefined>;
  /** Removes the payload; nothing happens when it is not there. */
  remove(location: JsonObject): Promise<void>;
  /**
   * Checks at the start whether the store can be used. Throws NOT_STORED if an operator has to fix something, UNAVAILABLE if
   * that cannot be known now.
   */
  check?(): Promise<void>;
}
