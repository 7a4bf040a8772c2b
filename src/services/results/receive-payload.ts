import { createHash, randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { createGzip, deflateRawSync, gzip } from "node:zlib";
import { writingFile } from "../../platform/system/result-file.ts";
import type { PayloadBody } from "../../ports/payload-store.ts";
import type { ResultCompression } from "../../schema/api/results.ts";
import { createPayloadCheck, type PayloadFacts } from "./payload-check.ts";

/** A payload that has arrived completely: in memory if it is short, else in a temporary file. */
export interface TakenPayload extends PayloadFacts {
  compression: "gzip" | null;
  /** As it is to be stored. */
  body: PayloadBody;
  /** The same in memory, of a short one. */
  buffer: Buffer | undefined;
  /** Removes the file, unless a store has taken it. Never throws. */
  discard(): Promise<void>;
}

/** How a payload is to be taken. */
export interface TakeOptions {
  /** Folder for the files of long ones. */
  folder: string;
  /** Longest payload that stays in memory. */
  memoryBytesMax: number;
  /** Longest payload at all. */
  bytesMax: number;
  /** Undefined: what is short and shrinks well is compressed. */
  compression: ResultCompression | undefined;
  /** The text is to be JSON, or at least to look so at both ends. */
  isJson: boolean;
}

const GZIP = { level: 1 };
const COMPRESSED_BYTES_MIN = 4_096;
const SAMPLE_BYTES = 4_096;
const TEMPORARY = ".part";
/** A file that is being written for longer than this belongs to a process that died. */
const REMAINS_MS = 3_600_000;

/**
 * Reads a payload to its end in bounded memory. Throws `FlowError` TOO_LARGE, INVALID_INPUT for a text that must be JSON and
 * cannot be, NOT_STORED, or what the source throws.
 */
export async function takePayload(source: AsyncIterable<Uint8Array>, options: TakeOptions): Promise<TakenPayload> {
  const check = createPayloadCheck(options);
  const parts = check.checked(source);
  const held: Uint8Array[] = [];
  let bytes = 0;
  for (;;) {
    const { value, done } = await parts.next();
    if (done === true) return inMemory(joined(held), check.facts(), options.compression);
    held.push(value);
    bytes += value.byteLength;
    if (bytes > options.memoryBytesMax) break;
  }
  const all = (async function* () {
    yield* held.splice(0);
    yield* parts;
  })();
  const file = await spool(all, options);
  try {
    const compression = options.compression === "gzip" ? "gzip" : null;
    return { ...check.facts(), ...file, compression, buffer: undefined };
  } catch (error) {
    await file.discard();
    throw error;
  }
}

/** Mostly a payload arrives as one part, which is not copied. */
function joined(parts: readonly Uint8Array[]): Buffer {
  const [only] = parts;
  if (only === undefined || parts.length > 1) return Buffer.concat(parts);
  return Buffer.from(only.buffer, only.byteOffset, only.byteLength);
}

/** A payload that is in memory already. */
export function takeText(text: string | Uint8Array): Promise<TakenPayload> {
  const buffer = typeof text === "string" ? Buffer.from(text) : joined([text]);
  return takeBytes(buffer, { bytesMax: buffer.length, isJson: false, compression: undefined });
}

/** The same, checked as {@link takePayload} does. Throws as it does. */
export async function takeBytes(
  bytes: Buffer,
  options: Pick<TakeOptions, "bytesMax" | "isJson" | "compression">,
): Promise<TakenPayload> {
  const check = createPayloadCheck(options);
  check.add(bytes);
  return await inMemory(bytes, check.facts(), options.compression);
}

async function inMemory(
  payload: Buffer,
  facts: PayloadFacts,
  compression: ResultCompression | undefined,
): Promise<TakenPayload> {
  const isSqueezed = compression === undefined ? shrinksWell(payload) : compression === "gzip";
  const buffer = isSqueezed ? await promisify(gzip)(payload, GZIP) : payload;
  const sha256 = isSqueezed ? createHash("sha256").update(buffer).digest("hex") : facts.sha256;
  const body: PayloadBody = {
    bytes: buffer.length,
    sha256,
    async *read() {
      yield buffer;
    },
  };
  return { ...facts, compression: isSqueezed ? "gzip" : null, body, buffer, discard: async () => undefined };
}

/** What gzip puts around what it squeezed. */
const GZIP_FRAME_BYTES = 18;
/** A buffer that holds any sample, squeezed or not: the usual one, of 16 KiB, takes as long to get as the squeezing. */
const SAMPLE = { ...GZIP, chunkSize: SAMPLE_BYTES + 64 };

/** Whether gzip halves the first 4 KiB: 30 us that save two milliseconds for text that does not shrink. */
function shrinksWell(payload: Buffer): boolean {
  if (payload.length < COMPRESSED_BYTES_MIN) return false;
  const sample = payload.subarray(0, SAMPLE_BYTES);
  return (deflateRawSync(sample, SAMPLE).length + GZIP_FRAME_BYTES) * 2 < sample.length;
}

/** Writes the payload to a file, as it is to be stored, on the disk before this returns. */
async function spool(
  source: AsyncIterable<Uint8Array>,
  { folder, compression }: TakeOptions,
): Promise<Pick<TakenPayload, "body" | "discard">> {
  const path = join(folder, `${randomBytes(12).toString("hex")}${TEMPORARY}`);
  // What cannot be removed now is removed with other remains.
  const discard = () => rm(path, { force: true }).catch(() => undefined);
  const hash = createHash("sha256");
  let bytes = 0;
  try {
    await writingFile(() => mkdir(folder, { recursive: true }));
    const file = await writingFile(() => open(path, "wx", 0o600));
    const write = async (parts: AsyncIterable<Uint8Array>) => {
      for await (const part of parts) {
        hash.update(part);
        bytes += part.byteLength;
        await writingFile(() => file.appendFile(part));
      }
    };
    try {
      if (compression === "gzip") await pipeline(Readable.from(source), createGzip(GZIP), write);
      else await write(source);
      await writingFile(() => file.sync());
    } finally {
      await file.close();
    }
  } catch (error) {
    await discard();
    throw error;
  }
  const body: PayloadBody = {
    bytes,
    sha256: hash.digest("hex"),
    read: () => createReadStream(path, { highWaterMark: 262_144 }),
    moveTo: (place) => rename(path, place),
  };
  return { body, discard };
}

/** Removes what a process that died has left half written below `folder`; gives how many. */
export async function removeSpooledRemains(folder: string, now: number): Promise<number> {
  const files = await readdir(folder).catch(() => []);
  let removed = 0;
  for (const file of files.filter((name) => name.endsWith(TEMPORARY))) {
    const path = join(folder, file);
    const writtenAt = await stat(path).then(
      ({ mtimeMs }) => mtimeMs,
      () => now,
    );
    if (now - writtenAt < REMAINS_MS) continue;
    await rm(path, { force: true });
    removed += 1;
  }
  return removed;
}
