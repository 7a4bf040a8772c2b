import { isUtf8 } from "node:buffer";
import { createHash } from "node:crypto";
import { FlowError } from "../../schema/words/errors.ts";

/** What is known of a payload once all of it was seen. */
export interface PayloadFacts {
  bytes: number;
  /** In hex. */
  sha256: string;
  /** It holds sealed tokens: workers get them opened, people get a mask. */
  isSealed: boolean;
}

/** Looks at a payload while it passes. */
export interface PayloadCheck {
  /** The same parts. Throws `FlowError` TOO_LARGE, INVALID_INPUT. */
  checked(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array>;
  add(part: Uint8Array): void;
  /** Throws `FlowError` INVALID_INPUT. */
  facts(): PayloadFacts;
}

/** The first and the last character of a JSON text, without spaces: a word and a number may end in what others begin with. */
const ENDS_OF_JSON = /^(\{\}|\[\]|""|[\dtfn-][\del])$/;
const END_BYTES = 64;
/** How a sealed token begins. */
const SEAL = Buffer.from("[sealed:");

/**
 * Checks length, checksum, and a JSON text's two ends and encoding, but does not parse: parsing would be a third of the cost of
 * storing (1.3 ms of 4 for 160 KB). A caller who stores invalid JSON later reads that its reference is not available.
 */
export function createPayloadCheck(wanted: { bytesMax: number; isJson: boolean }): PayloadCheck {
  const hash = createHash("sha256");
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let bytes = 0;
  let isSealed = false;
  let head = Buffer.alloc(0);
  let tail = Buffer.alloc(0);

  // A tenth of the decoder's time, while no part ends within a character.
  let isWhole = true;
  const decode = (part?: Uint8Array) => {
    if (isWhole && (part === undefined || isUtf8(part))) return;
    isWhole = false;
    try {
      if (wanted.isJson) decoder.decode(part, { stream: part !== undefined });
    } catch {
      throw notJson();
    }
  };
  const add = (part: Uint8Array) => {
    bytes += part.byteLength;
    if (bytes > wanted.bytesMax) {
      throw new FlowError("TOO_LARGE", `A result is ${wanted.bytesMax.toLocaleString("en")} bytes long at most`);
    }
    hash.update(part);
    decode(part);
    const view = Buffer.from(part.buffer, part.byteOffset, part.byteLength);
    // A token may begin in one part and go on in the next.
    isSealed ||= view.includes(SEAL) || Buffer.concat([tail, view.subarray(0, SEAL.length)]).includes(SEAL);
    if (head.length < END_BYTES) head = Buffer.concat([head, view.subarray(0, END_BYTES)]);
    tail = Buffer.concat([tail, view.subarray(-END_BYTES)]).subarray(-END_BYTES);
  };
  return {
    add,
    async *checked(source) {
      for await (const part of source) {
        add(part);
        yield part;
      }
    },
    facts() {
      decode();
      const first = head.toString("latin1").trimStart().slice(0, 1);
      const last = tail.toString("latin1").trimEnd().slice(-1);
      if (wanted.isJson && !ENDS_OF_JSON.test(first + last)) throw notJson();
      return { bytes, sha256: hash.digest("hex"), isSealed };
    },
  };
}

function notJson(): FlowError {
  return new FlowError("INVALID_INPUT", "The body is not a JSON text in UTF-8");
}
