import type { DiagnosticCode } from "./codes.ts";

/**
 * Longest document in bytes (of text: in UTF-16 units): 1 MiB. Checked before anything looks at the content, so that
 * 50 MB are refused at once. The largest playbooks seen in practice are below 200 KiB.
 */
export const DOCUMENT_BYTES_MAX = 1024 * 1024;

/** The document's text, or why it cannot be read and the offset in the readable part. */
export type Decoded =
  | { text: string }
  | { text: string; code: DiagnosticCode; offset: number; message: string; hint: string };

/** The text of a document: bounded, UTF-8, without byte order mark and control characters. */
export function decode(source: string | Uint8Array): Decoded {
  const size = typeof source === "string" ? source.length : source.byteLength;
  if (size > DOCUMENT_BYTES_MAX) {
    const message = `the document has ${size.toLocaleString("en")} bytes; at most ${DOCUMENT_BYTES_MAX.toLocaleString("en")} are read`;
    return {
      text: "",
      code: "too-large",
      offset: 0,
      message,
      hint: "move data out of the playbook, or split it into sub-playbooks",
    };
  }
  const text = typeof source === "string" ? source.replace(/^\uFEFF/, "") : decodeUtf8(source);
  if (typeof text !== "string") return text;
  const control = CONTROL_CHARACTER.exec(text);
  if (control === null) return { text };
  const code = control[0].charCodeAt(0).toString(16).padStart(4, "0");
  return {
    text: text.slice(0, control.index),
    code: "not-text",
    offset: control.index,
    message: `character U+${code.toUpperCase()} is not allowed in YAML`,
    hint: "is this a binary file? In text, write the character as an escape in double quotes",
  };
}

/** What YAML 1.2 does not allow below the space: everything but tab, line feed and carriage return. */
const CONTROL_CHARACTER = /[\u0000-\u0008\u000B\u000C\u000E-\u001F]/;

function decodeUtf8(bytes: Uint8Array): string | Decoded {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    const offset = validPrefix(bytes);
    const before = new TextDecoder().decode(bytes.subarray(0, offset));
    const byte = (bytes[offset] ?? 0).toString(16).padStart(2, "0");
    return {
      text: before,
      code: "not-utf8",
      offset: before.length,
      message: `byte 0x${byte} at byte offset ${offset} is not UTF-8`,
      hint: "save the file in UTF-8",
    };
  }
}

/**
 * Offset of the first byte that belongs to no character. Every shorter prefix is valid when the decoder may end within a
 * character, so that a binary search finds the longest one in 20 decodings (the decoder does not say where it failed); the
 * character that it ends within, at most 3 bytes, is the broken one.
 */
function validPrefix(bytes: Uint8Array): number {
  let valid = 0;
  let invalid = bytes.byteLength + 1;
  while (invalid - valid > 1) {
    const middle = (valid + invalid) >> 1;
    if (isUtf8(bytes.subarray(0, middle), true)) valid = middle;
    else invalid = middle;
  }
  while (!isUtf8(bytes.subarray(0, valid), false)) valid -= 1;
  return valid;
}

function isUtf8(bytes: Uint8Array, mayEndWithinCharacter: boolean): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: mayEndWithinCharacter });
    return true;
  } catch {
    return false;
  }
}
