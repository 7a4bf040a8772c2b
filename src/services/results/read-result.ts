import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { byteSlice } from "../../platform/http/byte-slice.ts";
import type { PayloadRange, PayloadReading } from "../../ports/payload-store.ts";
import type { FoundResult } from "../../repositories/results/results.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { ResultsObserver } from "./observer.ts";
import type { PayloadStores } from "./storage-tiers.ts";

/** A payload that can be read, and what is known of it before. */
export interface OpenedResult {
  /** Of the payload itself, not compressed, as the checksum is. */
  bytes: number;
  /** In hex. */
  sha256: string;
  contentType: string;
  /** It holds sealed tokens. */
  isSealed: boolean;
  /**
   * The payload or a part of it; read it to its end, or end the iteration to release it. A short payload is verified before its
   * first byte; a long one as it passes, with its last bytes held back until the checksum matches; a part of a long one after a
   * read of the whole. Throws `FlowError` REFERENCE_NOT_AVAILABLE, before or while reading, UNAVAILABLE.
   */
  open(range?: PayloadRange): Promise<AsyncIterable<Uint8Array>>;
}

/** What reading needs. */
export interface ReadDeps {
  stores: PayloadStores;
  observer: ResultsObserver;
  /** Milliseconds since 1970. */
  now(): number;
}

/** Payloads up to this are verified before their first byte is given. */
const AT_ONCE_BYTES_MAX = 1_048_576;
/** How long a long payload that was verified as a whole counts as whole: a reader of parts asks for many of them. */
const VERIFIED_MS = 300_000;
const VERIFIED_MAX = 1_000;

/** Reads payloads from any store, and never returns one that differs from what was written. */
export function createResultReader(deps: ReadDeps) {
  const { stores, observer, now } = deps;
  const verified = new Map<string, number>();

  const raw = async (ref: string, found: FoundResult, range?: PayloadRange): Promise<AsyncIterable<Uint8Array>> => {
    const isSqueezed = found.compression !== null;
    const reading = await readingFrom(stores, ref, found, isSqueezed ? undefined : range);
    if (reading === undefined) throw notAvailable(ref, "its payload cannot be read where it was stored");
    if (!isSqueezed && reading.bytes !== undefined && reading.bytes !== found.bytes) {
      await endOf(reading.body);
      throw damaged(ref, found);
    }
    if (!isSqueezed) return reading.body;
    const plain = gunzipped(reading.body, found.bytes, () => damaged(ref, found));
    return range === undefined ? plain : byteSlice(plain, range);
  };
  const damaged = (ref: string, found: FoundResult) => {
    observer.damaged(found.store, ref);
    return notAvailable(ref, "what is stored is not what was written (sha256 differs)");
  };
  const whole = async function* (ref: string, found: FoundResult): AsyncGenerator<Uint8Array> {
    const hash = createHash("sha256");
    let held: Uint8Array | undefined;
    let bytes = 0;
    for await (const part of await raw(ref, found)) {
      hash.update(part);
      bytes += part.byteLength;
      // More than there should be: who counts bytes would not see the end that is missing.
      if (bytes > found.bytes) throw damaged(ref, found);
      if (held !== undefined) yield held;
      held = part;
    }
    if (bytes !== found.bytes || hash.digest("hex") !== found.sha256) throw damaged(ref, found);
    verified.delete(keyOf(ref, found));
    verified.set(keyOf(ref, found), now() + VERIFIED_MS);
    for (const [key] of verified) if (verified.size > VERIFIED_MAX) verified.delete(key);
    if (held !== undefined) yield held;
  };
  const all = async (ref: string, found: FoundResult): Promise<Buffer> => {
    const parts: Uint8Array[] = [];
    for await (const part of whole(ref, found)) parts.push(part);
    return Buffer.concat(parts);
  };

  return {
    /** The whole payload in memory, verified. Throws as {@link OpenedResult.open} does. */
    all,
    /** Reads the payload found under a reference. */
    opened(ref: string, found: FoundResult): OpenedResult {
      const { bytes, sha256, contentType, isSealed } = found;
      const open = async (range?: PayloadRange) => {
        observer.read(found.store, range === undefined ? bytes : range.end - range.start);
        if (bytes <= AT_ONCE_BYTES_MAX) {
          const payload = await all(ref, found);
          return once(range === undefined ? payload : payload.subarray(range.start, range.end));
        }
        if (range === undefined) return begun(whole(ref, found));
        const until = verified.get(keyOf(ref, found)) ?? 0;
        if (until < now()) for await (const _ of whole(ref, found));
        return begun(counted(await raw(ref, found, range), range, () => damaged(ref, found)));
      };
      return { bytes, sha256, contentType, isSealed, open };
    },
  };
}

/** A payload is never replaced in its place: what was verified there once is known by reference, place and checksum. */
function keyOf(ref: string, { sha256, location }: FoundResult): string {
  return `${ref} ${sha256} ${JSON.stringify(location)}`;
}

async function readingFrom(
  stores: PayloadStores,
  ref: string,
  { store: name, payload, location }: FoundResult,
  range: PayloadRange | undefined,
): Promise<PayloadReading | undefined> {
  if (payload !== null) {
    return { bytes: payload.byteLength, body: once(payload.subarray(range?.start, range?.end)) };
  }
  if (location === null) return undefined;
  const store = stores.get(name);
  if (store === undefined) throw notAvailable(ref, `it is in the store '${name}', which is not configured here`);
  return store.read(location, range);
}

async function* once(payload: Uint8Array): AsyncGenerator<Uint8Array> {
  yield payload;
}

/**
 * Reads the first part at once: what fails at its beginning fails before an answer has begun, and a file or a connection that
 * is open is in the hands of a generator that has begun, which closes it when it is ended.
 */
async function begun(parts: AsyncGenerator<Uint8Array>): Promise<AsyncIterable<Uint8Array>> {
  const first = await parts.next();
  return (async function* () {
    try {
      if (first.done !== true) yield first.value;
      yield* parts;
    } finally {
      await parts.return(undefined);
    }
  })();
}

async function endOf(body: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const _ of body) return;
}

async function* gunzipped(
  body: AsyncIterable<Uint8Array>,
  bytesMax: number,
  damaged: () => FlowError,
): AsyncGenerator<Uint8Array> {
  const source = Readable.from(body);
  const gunzip = createGunzip();
  source.once("error", (error) => gunzip.destroy(error));
  let bytes = 0;
  try {
    for await (const part of source.pipe(gunzip) as AsyncIterable<Buffer>) {
      bytes += part.length;
      if (bytes > bytesMax) throw damaged();
      yield part;
    }
  } catch (error) {
    // zlib's error codes for data that are not gzip or end early start with this.
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    throw code.startsWith("Z_") ? damaged() : error;
  } finally {
    source.destroy();
    gunzip.destroy();
  }
}

/** A part that a store gives short, or long, is no part. */
async function* counted(
  parts: AsyncIterable<Uint8Array>,
  { start, end }: PayloadRange,
  damaged: () => FlowError,
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const part of parts) {
    bytes += part.byteLength;
    if (bytes > end - start) throw damaged();
    yield part;
  }
  if (bytes < end - start) throw damaged();
}

/** The error of a reference that leads to nothing. */
export function notAvailable(ref: string, why: string, cause?: unknown): FlowError {
  return new FlowError("REFERENCE_NOT_AVAILABLE", `The result ${ref} is not available: ${why}`, { cause });
}
