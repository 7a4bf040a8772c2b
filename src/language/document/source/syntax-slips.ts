/** A slip that explains several errors of the YAML reader at once. */
export interface SyntaxSlip {
  /** Offset in the text. */
  offset: number;
  message: string;
  hint: string;
}

/**
 * What is most likely behind the first error of the YAML reader, at `offset`, where all that follows is noise: the lines of a block
 * that are not indented, or text of another kind (a pasted terminal). Undefined where the reader's own words are better.
 */
export function findSlip(text: string, offset: number): SyntaxSlip | undefined {
  const lines = linesUpTo(text, offset);
  return emptyBlock(lines) ?? textWithColon(lines[0]) ?? foreignText(lines);
}

/** Words before the first `: ` of an item: no key, but a text that has a colon in it. */
const TEXT_WITH_COLON = /^(\s*-\s+)[^\s"'{[#&*!|>][^:]*\s[^:]*: /;

/** What is to be said of a text that YAML took for a map. */
export const QUOTE_LINE = "text with `: ` is a map; quote the whole line";

function textWithColon(line: Line | undefined): SyntaxSlip | undefined {
  const [, before] = TEXT_WITH_COLON.exec(line?.text ?? "") ?? [];
  if (line === undefined || before === undefined) return undefined;
  const offset = line.start + before.length;
  return { offset, message: QUOTE_LINE, hint: "put it into single quotes, or write it as a block behind `- |`" };
}

interface Line {
  start: number;
  text: string;
  number: number;
}

/** Lines behind the first error that are looked at: the reader notices some slips a line late, none earlier. */
const LOOKED_BACK = 12;

/** The line of the offset and those before it, the last first; those that are blank or comments left out. */
function linesUpTo(text: string, offset: number): Line[] {
  const lines: Line[] = [];
  let end = text.indexOf("\n", offset);
  if (end === -1) end = text.length;
  for (let number = countLines(text, end); end >= 0 && lines.length < LOOKED_BACK; number -= 1) {
    const start = end === 0 ? 0 : text.lastIndexOf("\n", end - 1) + 1;
    const line = text.slice(start, end).replace(/\r$/, "");
    if (!/^\s*(#.*)?$/.test(line)) lines.push({ start, text: line, number });
    end = start - 1;
  }
  return lines;
}

function countLines(text: string, end: number): number {
  let count = 1;
  for (let at = text.indexOf("\n"); at !== -1 && at < end; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}

const BLOCK_HEAD = /^(\s*(?:- +)*)([\w.-]+):\s*[|>][-+\d]*\s*(?:#.*)?$/;
/** How a line of a map or list begins. */
const STRUCTURE = /^\s*(?:-(?:\s|$)|["']?[\w./ -]+["']?\s*:(?:\s|$)|---|\.\.\.|[\]}])/;

function emptyBlock(lines: readonly Line[]): SyntaxSlip | undefined {
  for (const [index, line] of lines.entries()) {
    const [, indent, key] = BLOCK_HEAD.exec(line.text) ?? [];
    if (indent === undefined || key === undefined) continue;
    const after = lines[index - 1];
    const next = after?.text ?? "";
    const isDeeper = next.length - next.trimStart().length > indent.length;
    if (after === undefined || isDeeper || STRUCTURE.test(next)) return undefined;
    const offset = line.start + indent.length;
    const message = `\`${key}\` is empty; indent its lines deeper`;
    return { offset, message, hint: `its lines stand right of \`${key}\`` };
  }
  return undefined;
}

/** A line at the margin that begins no key and no item: what the reader makes of it and of all behind it is a guess. */
function foreignText(lines: readonly Line[]): SyntaxSlip | undefined {
  const isForeign = ({ text }: Line) => /^\S/.test(text) && !STRUCTURE.test(text) && !/^["'[{&*!|>%@`]/.test(text);
  const prompt = lines.slice(0, 3).findLast((line) => isForeign(line));
  if (prompt === undefined) return undefined;
  const message = `this is no YAML from line ${prompt.number} on`;
  return {
    offset: prompt.start,
    message,
    hint: "is it a part of a terminal's text? Remove it, or put it into a comment",
  };
}
