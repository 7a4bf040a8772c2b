/**
 * Lists and maps within each other in a text from outside that is read as JSON. Beyond some thousands `JSON.stringify`, PostgreSQL
 * and every walk over a value end with a fault.
 */
export const JSON_DEPTH_MAX = 400;

/** In the result of a task: what a tool has read, and what it puts around it. A body of the API holds a result, and more around that. */
export const RESULT_DEPTH_MAX = JSON_DEPTH_MAX + 20;

/** Whether lists and maps of a JSON text are more than `max` within each other: known before it is parsed. The parser reports invalid JSON. */
export function isDeeper(json: string, max: number = JSON_DEPTH_MAX): boolean {
  if (json.length <= max) return false;
  // Those within texts count too. Searching for a character costs a fraction of looking at each, and most texts have few.
  let left = max;
  for (const opening of ["[", "{"]) {
    for (let at = json.indexOf(opening); at >= 0 && left >= 0; at = json.indexOf(opening, at + 1)) left -= 1;
  }
  return left < 0 && depthIsAbove(json, max);
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Counts brackets outside of texts. */
function depthIsAbove(json: string, max: number): boolean {
  let depth = 0;
  for (let at = 0; at < json.length; at += 1) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) at = endOfText(json, at);
    else if (code === 0x7b || code === 0x5b) depth += 1;
    else if (code === 0x7d || code === 0x5d) depth -= 1;
    if (depth > max) return true;
  }
  return false;
}

/** The place of the quote that ends the text which begins at `start`; the end where none does. */
function endOfText(json: string, start: number): number {
  for (let at = json.indexOf('"', start + 1); at >= 0; at = json.indexOf('"', at + 1)) {
    let escapes = 0;
    while (json.charCodeAt(at - 1 - escapes) === BACKSLASH) escapes += 1;
    if (escapes % 2 === 0) return at;
  }
  return json.length;
}
