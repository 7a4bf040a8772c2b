import type { ReactNode } from "react";
import { type MarkdownBlock, type MarkdownPart, markdownOf } from "../../../src/schema/api/waits/markdown.ts";

/* The page of a link shows descriptions by the same rules (`src/routes/approvals/link-markdown.ts`). */

/** A description in Markdown. It becomes elements and never markup, so that an author's text can do nothing on this page. */
export function Markdown({ text }: { text: string }): ReactNode {
  return (
    <div className="markdown">
      {markdownOf(text).map((block, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: blocks are identified by their position in the text
        <Block key={index} block={block} />
      ))}
    </div>
  );
}

function Block({ block }: { block: MarkdownBlock }): ReactNode {
  if (block.kind === "fence") return <pre>{block.text}</pre>;
  if (block.kind === "heading") return <h3>{inline(block.parts)}</h3>;
  if (!("items" in block)) return <p>{inline(block.parts)}</p>;
  // biome-ignore lint/suspicious/noArrayIndexKey: items are identified by their position in the text
  const items = block.items.map((parts, index) => <li key={index}>{inline(parts)}</li>);
  return block.kind === "numbers" ? <ol>{items}</ol> : <ul>{items}</ul>;
}

function inline(parts: readonly MarkdownPart[]): ReactNode[] {
  return parts.map((part, index) => {
    const key = `${index}`;
    if (part.kind === "code") return <code key={key}>{part.text}</code>;
    if (part.kind === "bold") return <strong key={key}>{part.text}</strong>;
    if (part.kind === "italic") return <em key={key}>{part.text}</em>;
    if (part.kind !== "link") return part.text;
    return (
      <a key={key} href={part.address} target="_blank" rel="noreferrer noopener">
        {part.text}
      </a>
    );
  });
}
