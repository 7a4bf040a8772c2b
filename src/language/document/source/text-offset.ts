import type { Place } from "./place.ts";

/**
 * Offset in the document of character `index` of a text value. Exact for texts on one line without escapes and for
 * blocks; for others (folded lines, escapes) it is where the value begins.
 */
export function textOffset(document: string, place: Place, index: number): number {
  const { value, style, valueStart, valueEnd } = place;
  if (typeof value !== "string") return valueStart;
  if (style === "plain" || style === "quoted") {
    const quote = style === "quoted" ? 1 : 0;
    return valueEnd - valueStart === value.length + 2 * quote ? valueStart + quote + index : valueStart;
  }
  if (style !== "literal") return valueStart;
  const before = value.slice(0, index);
  const lineOfText = value.slice(before.lastIndexOf("\n") + 1).split("\n", 1)[0] ?? "";
  const lineStart = startOfLineAfter(document, valueStart, before.split("\n").length);
  if (lineStart === undefined) return valueStart;
  const line = document.slice(lineStart).split(/\r?\n/, 1)[0] ?? "";
  if (!line.endsWith(lineOfText)) return valueStart;
  return lineStart + line.length - lineOfText.length + (before.length - before.lastIndexOf("\n") - 1);
}

/** Start of the `count`-th line after the line that contains `offset`. */
function startOfLineAfter(document: string, offset: number, count: number): number | undefined {
  let at = offset;
  for (let left = count; left > 0; left -= 1) {
    const end = document.indexOf("\n", at);
    if (end === -1) return undefined;
    at = end + 1;
  }
  return at;
}

/** The first text at or below `place` that contains a word, with the word's index there. */
export function findWord(place: Place, word: string): { place: Place; index: number } | undefined {
  if (typeof place.value === "string") {
    for (let index = place.value.indexOf(word); index !== -1; index = place.value.indexOf(word, index + 1)) {
      const around = (place.value[index - 1] ?? " ") + (place.value[index + word.length] ?? " ");
      if (!/\w/.test(around)) return { place, index };
    }
    return undefined;
  }
  for (const child of [...place.items, ...place.fields.values()]) {
    const found = findWord(child, word);
    if (found !== undefined) return found;
  }
  return undefined;
}
