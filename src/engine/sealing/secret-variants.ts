/**
 * The forms in which a secret may appear: in URLs, forms, JSON, headers, logs. They are searched for too. A text derived in
 * another way, for example hashed or split, is not recognised.
 */

/** Base64 of fewer characters also occurs by chance. */
const BASE64_CHARS_MIN = 6;
/** Shortest line of a multi-line secret that counts as a secret: logs come line by line. */
const LINE_CHARS_MIN = 8;

/**
 * The text itself and its two most common other forms: for the texts of sensitive results, of which there may be a hundred
 * thousand. All forms of one text take a tenth of a millisecond.
 */
export function commonVariantsOf(text: string): Set<string> {
  return new Set([text, quoted(text), ...percentEncoded(text).slice(0, 1)]);
}

/** The text itself and every other way to write it, each once. */
export function variantsOf(text: string): Set<string> {
  const found = new Set([text]);
  for (const variant of [...escaped(text), ...percentEncoded(text), ...base64Parts(bytesOf(text))]) found.add(variant);
  if (text.includes("\n")) {
    for (const line of text.split(/\r?\n/)) {
      if (line.length >= LINE_CHARS_MIN && !line.startsWith("-----")) found.add(line);
    }
  }
  return found;
}

/** Base64 of a user's name and password, as in `Authorization: Basic`. */
export function basicVariant(user: string, password: string): string {
  return base64(bytesOf(`${user}:${password}`));
}

/** As it appears within quotes: in JSON, JSON within JSON, ASCII-only JSON, a shell, Python. */
function escaped(text: string): string[] {
  const json = quoted(text);
  const python = json.replaceAll('\\"', '"');
  const found = [json, quoted(json), python];
  if (text.includes("'")) found.push(text.replaceAll("'", "'\\''"), python.replaceAll("'", "\\'"));
  const ascii = json.replace(/[\u007f-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return [...found, ascii];
}

function quoted(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

function percentEncoded(text: string): string[] {
  let encoded: string;
  try {
    encoded = encodeURIComponent(text);
  } catch {
    // Half a character, which no URL can hold.
    return [];
  }
  // The characters that encodeURIComponent leaves and other encoders escape, and the slash, which many leave.
  const strict = encoded.replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
  const form = strict.replaceAll("%20", "+");
  const all = [encoded, strict, form, strict.replaceAll("%2F", "/"), form.replaceAll("%2A", "*")];
  const lower = all.map((one) => one.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()));
  // A URL within a URL, as in a proxy's log.
  return [...all, ...lower, ...all.map(encodeURIComponent)];
}

/**
 * The part of its base64 that is the same whatever precedes and follows it, for each of three alignments. So the password is
 * found in the base64 of `user:password` for any user.
 */
function base64Parts(bytes: Uint8Array): string[] {
  const found: string[] = [];
  for (const before of [0, 1, 2]) {
    const shifted = new Uint8Array(before + bytes.length);
    shifted.set(bytes, before);
    const text = base64(shifted);
    // Characters that also contain bits of the text before or after.
    const from = Math.ceil((before * 8) / 6);
    const to = Math.floor((shifted.length * 8) / 6);
    const parts = [text.slice(from, to), ...(before === 0 ? [text] : [])];
    for (const part of parts) if (part.length >= BASE64_CHARS_MIN) found.push(part, urlSafe(part));
  }
  return found;
}

function urlSafe(text: string): string {
  return text.replaceAll("+", "-").replaceAll("/", "_");
}

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** In chunks: a call takes a limited number of arguments. */
function base64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8_192) text += String.fromCharCode(...bytes.subarray(at, at + 8_192));
  return btoa(text);
}
