import type { Position } from "../../../schema/words/playbook.ts";

/** Line and column, both from 1, of an offset of the text. */
export type Locate = (offset: number) => Position;

/** A {@link Locate} for one text. Lines end with a line feed, as YAML's do with or without a carriage return before it. */
export function createLocator(text: string): Locate {
  const starts = [0];
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return (offset) => {
    let low = 0;
    let high = starts.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle;
    }
    return { line: low + 1, column: offset - (starts[low] ?? 0) + 1 };
  };
}
