/**
 * The part of Markdown that people write into a description: paragraphs, headings, lists, fences, code, bold, italics and links to the web.
 * It becomes data, and never markup: markup in the text is text, pictures are not loaded, and no link leads but to the web.
 */
export type MarkdownBlock =
  | { kind: "fence"; text: string }
  | { kind: "heading" | "paragraph"; parts: MarkdownPart[] }
  | { kind: "list" | "numbers"; items: MarkdownPart[][] };

/** A piece of a line. `address` begins with `https://` or `http://`. */
export type MarkdownPart =
  | { kind: "text" | "code" | "bold" | "italic"; text: string }
  | { kind: "link"; text: string; address: string };

/** The blocks of a text. The time grows with its length, whatever is in it. */
export function markdownOf(text: string): MarkdownBlock[] {
  return blocksOf(text).map(blockOf);
}

const FENCE = /^\s*```/;
const ITEM = /^\s*(?:[-*+]|\d{1,3}[.)])\s+/;
const HEADING = /^#{1,6}\s+/;

/** Lines that belong together. */
function blocksOf(text: string): string[][] {
  const blocks: string[][] = [];
  let open: string[] = [];
  let isCode = false;
  const close = () => {
    if (open.length > 0) blocks.push(open);
    open = [];
  };
  for (const line of text.split(/\r?\n/)) {
    if (FENCE.test(line)) {
      if (!isCode) close();
      open.push(line);
      if (isCode) close();
      isCode = !isCode;
    } else if (isCode) open.push(line);
    else if (line.trim() === "") close();
    else {
      const begins =
        HEADING.test(line) || HEADING.test(open[0] ?? "") || ITEM.test(line) !== ITEM.test(open[0] ?? line);
      if (begins) close();
      open.push(line);
    }
  }
  close();
  return blocks;
}

function blockOf(lines: readonly string[]): MarkdownBlock {
  const [first = ""] = lines;
  if (FENCE.test(first)) return { kind: "fence", text: lines.filter((line) => !FENCE.test(line)).join("\n") };
  if (HEADING.test(first)) return { kind: "heading", parts: partsOf(first.replace(HEADING, "")) };
  if (ITEM.test(first)) {
    const items = lines.map((line) => partsOf(line.replace(ITEM, "")));
    return { kind: /^\s*\d/.test(first) ? "numbers" : "list", items };
  }
  return { kind: "paragraph", parts: partsOf(lines.join("\n")) };
}

/** Code, bold, italics, links: what comes first in the text. Each alternative ends where another one of its kind begins, or is bounded. */
const INLINE =
  /`([^`]+)`|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*|\[([^[\]]+)\]\((https?:\/\/[^\s)]{1,2000})\)|(https?:\/\/[^\s<>)]+)/g;

function partsOf(text: string): MarkdownPart[] {
  const parts: MarkdownPart[] = [];
  let end = 0;
  for (const match of text.matchAll(INLINE)) {
    const [all, code, bold, italic, label, address, bare = ""] = match;
    if (match.index > end) parts.push({ kind: "text", text: text.slice(end, match.index) });
    if (code !== undefined) parts.push({ kind: "code", text: code });
    else if (bold !== undefined) parts.push({ kind: "bold", text: bold });
    else if (italic !== undefined) parts.push({ kind: "italic", text: italic });
    else parts.push({ kind: "link", text: label ?? bare, address: address ?? bare });
    end = match.index + all.length;
  }
  if (end < text.length) parts.push({ kind: "text", text: text.slice(end) });
  return parts;
}
