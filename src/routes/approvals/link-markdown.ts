import { type MarkdownBlock, type MarkdownPart, markdownOf } from "../../schema/api/waits/markdown.ts";
import { type Html, html } from "./html.ts";

/*
 * A description on the page of a link. What is Markdown is said once, for this page and for the inbox; every text of it goes through `html`, which
 * escapes it.
 */

/** A description in Markdown, as a piece of a page: no markup of the author's, no picture, and links that tell nothing of this page. */
export function markdownHtml(text: string): Html {
  return html`<div class="markdown">${markdownOf(text).map(blockHtml)}</div>`;
}

function blockHtml(block: MarkdownBlock): Html {
  switch (block.kind) {
    case "fence":
      return html`<pre>${block.text}</pre>`;
    case "heading":
      return html`<h2>${partsHtml(block.parts)}</h2>`;
    case "paragraph":
      return html`<p>${partsHtml(block.parts)}</p>`;
    case "list":
      return html`<ul>${itemsHtml(block.items)}</ul>`;
    case "numbers":
      return html`<ol>${itemsHtml(block.items)}</ol>`;
  }
}

function itemsHtml(items: readonly MarkdownPart[][]): Html[] {
  return items.map((parts) => html`<li>${partsHtml(parts)}</li>`);
}

function partsHtml(parts: readonly MarkdownPart[]): Html[] {
  return parts.map(partHtml);
}

function partHtml(part: MarkdownPart): Html {
  switch (part.kind) {
    case "text":
      return html`${part.text}`;
    case "code":
      return html`<code>${part.text}</code>`;
    case "bold":
      return html`<strong>${part.text}</strong>`;
    case "italic":
      return html`<em>${part.text}</em>`;
    case "link":
      return html`<a href="${part.address}" target="_blank" rel="noopener noreferrer nofollow">${part.text}</a>`;
  }
}
