import { isUtf8 } from "node:buffer";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { isDeeper, RESULT_DEPTH_MAX } from "../../schema/words/json-depth.ts";
import { MessageRequest } from "./message-request.ts";

/** Longest body in bytes where nothing else is said: a document of 1 MiB, and what JSON adds to it. */
export const BODY_BYTES_MAX = 2 * 1024 * 1024;

/** Lists and objects within each other, in a body: those of a result, and what a report puts around it. */
const DEPTH_MAX = RESULT_DEPTH_MAX + 80;

/** The error for a body beyond a limit. */
export function tooLarge(bytesMax: number): FlowError {
  return new FlowError("TOO_LARGE", `The body is longer than ${bytesMax.toLocaleString("en")} bytes`);
}

/** The whole body. Throws `FlowError` TOO_LARGE, as soon as it is clear that it is too long, or INVALID_INPUT. */
export async function readBody(request: Request, bytesMax: number): Promise<Buffer> {
  if (request instanceof MessageRequest) return request.bytes;
  const length = request.headers.get("content-length");
  if (length !== null && Number(length) > bytesMax) throw tooLarge(bytesMax);
  try {
    // HTTP holds a body to its announced length. This way reading costs a tenth of a stream's cost: touch no other field.
    if (length !== null) return Buffer.from(await request.arrayBuffer());
    const parts: Uint8Array[] = [];
    for await (const part of limitedBody(request, bytesMax)) parts.push(part);
    return Buffer.concat(parts);
  } catch (cause) {
    if (cause instanceof FlowError) throw cause;
    throw brokenOff(cause);
  }
}

/** A body that says it is no longer than this is read at once, which is several times as fast. */
const AT_ONCE_BYTES_MAX = 2 * 1024 * 1024;

/** The body part by part. Throws `FlowError` TOO_LARGE once more than `bytesMax` bytes came, INVALID_INPUT when it breaks off. */
export async function* limitedBody(request: Request, bytesMax: number): AsyncGenerator<Uint8Array> {
  const length = Number(request.headers.get("content-length") ?? Number.NaN);
  if (length <= Math.min(bytesMax, AT_ONCE_BYTES_MAX)) {
    yield await readBody(request, bytesMax);
    return;
  }
  if (request.body === null) return;
  let bytes = 0;
  try {
    for await (const part of request.body as AsyncIterable<Uint8Array>) {
      bytes += part.byteLength;
      if (bytes > bytesMax) throw tooLarge(bytesMax);
      yield part;
    }
  } catch (cause) {
    if (cause instanceof FlowError) throw cause;
    throw brokenOff(cause);
  }
}

function brokenOff(cause: unknown): FlowError {
  return new FlowError("INVALID_INPUT", "The body broke off before its end", { cause });
}

/**
 * The JSON value of a body. Throws `FlowError` INVALID_INPUT for invalid JSON, or if it is nested too deep, or has a number that would
 * become another value.
 */
export function parseJson(body: Buffer): unknown {
  if (!isUtf8(body)) throw new FlowError("INVALID_INPUT", "The body is not UTF-8");
  const text = body.toString("utf8");
  if (isDeeper(text, DEPTH_MAX))
    throw new FlowError("INVALID_INPUT", `The body has more than ${DEPTH_MAX} values within each other`);
  if (text.trim() === "") throw new FlowError("INVALID_INPUT", "The body is empty; send a JSON object");
  const value = parsed(text);
  const place = mayBeInfinite(text) ? infinitePlace(value) : undefined;
  if (place === undefined) return value;
  throw new FlowError(
    "INVALID_INPUT",
    `The body has a number beyond ±1.8e308${place === "" ? "" : ` at '${place}'`}, which would be read as infinite and written as null. Send it as text`,
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new FlowError("INVALID_INPUT", `The body is not JSON: ${messageOf(cause)}`, { cause });
  }
}

/** An exponent of three digits, or as many digits as it takes without one. Texts may have them too: then it is looked closer. */
function mayBeInfinite(text: string): boolean {
  if (/\d[eE]\+?\d{3}/.test(text)) return true;
  // Every 309th character: a row of so many digits has one of them. A pattern would count each row of digits from every digit.
  for (let at = DIGITS_OF_INFINITY - 1; at < text.length; at += DIGITS_OF_INFINITY) {
    const code = text.charCodeAt(at);
    if (
      code >= 0x30 &&
      code <= 0x39 &&
      MANY_DIGITS.test(text.slice(at - DIGITS_OF_INFINITY + 1, at + DIGITS_OF_INFINITY))
    ) {
      return true;
    }
  }
  return false;
}

/** The largest number is 1.8e308: of 309 digits. */
const DIGITS_OF_INFINITY = 309;
const MANY_DIGITS = /\d{309}/;

/** Where in a JSON value an infinite number stands: `workload.items[3]`, empty for the value itself; undefined: nowhere. */
function infinitePlace(root: unknown): string | undefined {
  const open: [value: unknown, place: string][] = [[root, ""]];
  for (let entry = open.pop(); entry !== undefined; entry = open.pop()) {
    const [value, place] = entry;
    if (value === Number.POSITIVE_INFINITY || value === Number.NEGATIVE_INFINITY) return place;
    if (typeof value !== "object" || value === null) continue;
    for (const [key, item] of Object.entries(value)) {
      if (typeof item !== "number" && typeof item !== "object") continue;
      const name = Array.isArray(value) ? `[${key}]` : place === "" ? key : `.${key}`;
      open.push([item, `${place}${name}`.slice(0, PLACE_CHARS_MAX)]);
    }
  }
  return undefined;
}

/** Keys may be long, and places are shown to people. */
const PLACE_CHARS_MAX = 200;
