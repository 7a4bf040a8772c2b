import type { ReactNode } from "react";

/**
 * The part of Markdown that people write into a description: paragraphs, headings, lists, fences, code, bold, italics and links to the web.
 * It becomes elements and never markup, so that an author's text can do nothing on this page.
 */
export function Markdown({ text }: { text: string }): ReactNode {
  return (
    <div className="markdown">
      {blocksOf(text).map((block, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: blocks are identified by their position in the text
        <Block key={index} lines={block} />
      ))}
    </div>
  );
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

function Block({ lines }: { lines: readonly string[] }): ReactNode {
  const [first = ""] = lines;
  if (FENCE.test(first)) return <pre>{lines.filter((line) => !FENCE.test(line)).join("\n")}</pre>;
  if (HEADING.test(first)) return <h3>{inline(first.replace(HEADING, ""))}</h3>;
  if (ITEM.test(first)) {
    // biome-ignore lint/suspicious/noArrayIndexKey: items are identified by their position in the text
    const items = lines.map((line, index) => <li key={`${index} ${line}`}>{inline(line.replace(ITEM, ""))}</li>);
    return /^\s*\d/.test(first) ? <ol>{items}</ol> : <ul>{items}</ul>;
  }
  return <p>{inline(lines.join("\n"))}</p>;
}

/** Code, bold, italics, links: what comes first in the text. */
const INLINE =
  /`([^`]+)`|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*|\[([^\]]+)\]\((https?:\/\/[^\s)]+)\)|(https?:\/\/[^\s<>)]+)/g;

function inline(text: string): ReactNode[] {
  const parts: ReactNode[] = [];
  let end = 0;
  for (const match of text.matchAll(INLINE)) {
    const [all, code, bold, italic, label, address, bare] = match;
    parts.push(text.slice(end, match.index));
    const key = match.index;
    if (code !== undefined) parts.push(<code key={key}>{code}</code>);
    else if (bold !== undefined) parts.push(<strong key={key}>{bold}</strong>);
    else if (italic !== undefined) parts.push(<em key={key}>{italic}</em>);
    else {
      parts.push(
        <a key={key} href={address ?? bare} target="_blank" rel="noreferrer noopener">
          {label ?? bare}
        </a>,
      );
    }
    end = match.index + all.length;
  }
  return [...parts, text.slice(end)];
}
