import type { Readable } from "node:stream";
import { promisify } from "node:util";
import zlib from "node:zlib";
import type { Json } from "../../schema/words/json.ts";
import { parseJsonKeepingDigits } from "../contract/parse-big-integers.ts";

/** Why a body cannot be used; `message` continues "the answer …". */
interface BodyProblem {
  code: "RESPONSE_TOO_LARGE" | "CONTENT_ENCODING";
  message: string;
}

/**
 * The whole body, decompressed, at most `limit` bytes both as sent and as unpacked: a bomb of a thousand to one is
 * stopped while it unpacks. Throws what the stream throws.
 */
export async function readBody(
  body: Readable,
  encoding: string | undefined,
  declaredLength: string | undefined,
  limit: number,
): Promise<Buffer | BodyProblem> {
  if (Number(declaredLength) > limit) {
    body.destroy();
    return tooLarge(`declares ${declaredLength} bytes, more`, limit);
  }
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    size += chunk.length;
    // Leaving the loop destroys the stream, and with it the connection.
    if (size > limit) return tooLarge("is larger", limit);
    chunks.push(chunk);
  }
  return decompress(Buffer.concat(chunks, size), encoding, limit);
}

/**
 * The body as a JSON value: parsed where it is JSON, whatever its content type says (integers beyond 2^53 stay text with
 * all their digits), else text in its charset. Bytes that are no text (an image, an archive) are given in base64.
 */
export function decodeBody(bytes: Buffer, contentType: string): { data: Json; encoding?: "base64" } {
  const text = textOf(bytes, contentType);
  if (text === undefined) return { data: bytes.toString("base64"), encoding: "base64" };
  try {
    return { data: parseJsonKeepingDigits(text) };
  } catch {
    return { data: text };
  }
}

const gunzip = promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.gunzip);
const inflate = promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.inflate);
const inflateRaw = promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.inflateRaw);
const brotli = promisify<Buffer, zlib.BrotliOptions, Buffer>(zlib.brotliDecompress);

/** No honest server compresses an answer more often than this. */
const CODINGS_MAX = 3;

async function decompress(bytes: Buffer, encoding: string | undefined, limit: number): Promise<Buffer | BodyProblem> {
  const codings = (encoding ?? "")
    .toLowerCase()
    .split(",")
    .map((coding) => coding.trim())
    .filter((coding) => coding !== "" && coding !== "identity");
  if (codings.length > CODINGS_MAX)
    return { code: "CONTENT_ENCODING", message: `is packed ${codings.length} times over` };
  let unpacked = bytes;
  for (const coding of codings.reverse()) {
    if (unpacked.length === 0) break;
    const next = await unpack(unpacked, coding, limit);
    if (!Buffer.isBuffer(next)) return next;
    unpacked = next;
  }
  return unpacked;
}

async function unpack(bytes: Buffer, coding: string, limit: number): Promise<Buffer | BodyProblem> {
  const options = { maxOutputLength: limit };
  try {
    if (coding === "gzip" || coding === "x-gzip") return await gunzip(bytes, options);
    if (coding === "br") return await brotli(bytes, options);
    // Some servers send "deflate" without the zlib wrapper; its first half-byte distinguishes the two.
    if (coding === "deflate") return await ((bytes[0]! & 15) === 8 ? inflate : inflateRaw)(bytes, options);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ERR_BUFFER_TOO_LARGE") return tooLarge(`unpacks from ${bytes.length} bytes to more`, limit);
    return { code: "CONTENT_ENCODING", message: `says it is ${coding} and cannot be unpacked (${message})` };
  }
  return { code: "CONTENT_ENCODING", message: `is packed with "${coding}"; gzip, deflate and br are supported` };
}

function tooLarge(how: string, limit: number): BodyProblem {
  return { code: "RESPONSE_TOO_LARGE", message: `${how} than the limit of ${Math.floor(limit / 1024)} KiB` };
}

/** Undefined when the bytes are not text: a type that is no text, no charset, and not valid UTF-8 or with a NUL. */
function textOf(bytes: Buffer, contentType: string): string | undefined {
  const charset = /charset\s*=\s*"?([\w.:-]+)/i.exec(contentType)?.[1] ?? "utf-8";
  if (/charset|^text\/|[/+](json|xml|yaml|x-ndjson|javascript|x-www-form-urlencoded)\b/i.test(contentType)) {
    return decodeText(bytes, charset);
  }
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** An unknown charset is read as UTF-8. */
function decodeText(bytes: Buffer, charset: string): string {
  try {
    return new TextDecoder(charset).decode(bytes);
  } catch {
    return new TextDecoder().decode(bytes);
  }
}
