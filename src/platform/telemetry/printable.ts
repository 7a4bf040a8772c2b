/**
 * JSON whose characters are all safe to print: what `JSON.stringify` leaves as it is and a terminal obeys is escaped, as it
 * escapes ESC itself. These are DEL, the C1 control characters (U+009B begins an escape sequence as `ESC [` does), line
 * separators, and what embeds, overrides or isolates a direction of writing. It reads back as the same value.
 */
export function printableJson(json: string): string {
  return json.replace(UNSAFE_IN_JSON, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

const UNSAFE_IN_JSON = /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;
