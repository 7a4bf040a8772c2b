import type { Json } from "../../schema/words/json.ts";

/*
 * PostgreSQL's text form of arrays: `{1,NULL,"a,\"b"}`, nested by braces. The driver's own reader cannot tell NULL from
 * the text "NULL", and needs a query on each new connection whose failure ends the process, because its promise is not awaited.
 */

/**
 * The list that `text` stands for; each element that is not NULL goes through `element`. Never throws: what is no array
 * stays text.
 */
export function parseArray(text: string, element: (text: string) => Json, delimiter: string): Json {
  // Arrays that do not begin at 1 name their bounds first: [0:2]={…}.
  const start = text.indexOf("{");
  if (start === -1) return text;
  const top: Json[] = [];
  const open: Json[][] = [];
  let at = start;
  while (at < text.length) {
    const char = text[at];
    if (char === "{") {
      const list: Json[] = open.length === 0 ? top : [];
      open.at(-1)?.push(list);
      open.push(list);
      at += 1;
    } else if (char === "}") {
      open.pop();
      at += 1;
    } else if (char === delimiter) {
      at += 1;
    } else {
      const token = char === '"' ? quoted(text, at) : plain(text, at, delimiter);
      open.at(-1)?.push(token.value === undefined ? null : element(token.value));
      at = token.end;
    }
  }
  return top;
}

/** The text form of a list, each element that is not null written by `element`. */
export function writeArray(list: readonly unknown[], element: (value: unknown) => string, delimiter: string): string {
  const items = list.map((item) => {
    if (item === null || item === undefined) return "NULL";
    if (Array.isArray(item)) return writeArray(item, element, delimiter);
    return `"${element(item).replace(/["\\]/g, "\\$&")}"`;
  });
  return `{${items.join(delimiter)}}`;
}

interface Token {
  /** Undefined for NULL. */
  value: string | undefined;
  end: number;
}

function quoted(text: string, start: number): Token {
  let value = "";
  let at = start + 1;
  while (at < text.length && text[at] !== '"') {
    if (text[at] === "\\") at += 1;
    value += text[at] ?? "";
    at += 1;
  }
  return { value, end: at + 1 };
}

function plain(text: string, start: number, delimiter: string): Token {
  let end = start;
  while (end < text.length && text[end] !== delimiter && text[end] !== "}") end += 1;
  const value = text.slice(start, end);
  return { value: value === "NULL" ? undefined : value, end };
}
