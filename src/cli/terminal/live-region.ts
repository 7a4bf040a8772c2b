import { stripVTControlCharacters } from "node:util";
import { textWidth } from "./text.ts";

/** What a screen needs of a terminal. */
export interface Terminal {
  write(text: string): void;
  columns(): number;
  rows(): number;
}

/** The lowest lines of a terminal, drawn again and again in place. */
export interface LiveRegion {
  /** Replaces what was drawn by `lines`; `above` goes above it for good. */
  draw(lines: readonly string[], above?: readonly string[]): void;
  /** Leaves what was drawn where it is and shows the cursor again. Safe to call twice. */
  end(): void;
}

const HIDE_CURSOR = "\u001b[?25l";
const SHOW_CURSOR = "\u001b[?25h";
const CLEAR_LINE = "\u001b[K";
const CLEAR_BELOW = "\u001b[J";

/**
 * A screen on a terminal. Every drawing is one write, and lines are overwritten rather than cleared first, so that nothing
 * flickers. A line must fit the columns; one that no longer does, because the window became narrower since, is counted with the
 * rows it has wrapped to.
 */
export function createLiveRegion(terminal: Terminal): LiveRegion {
  let drawn: number[] = [];
  let isHidden = false;
  return {
    draw(lines, above = []) {
      const up = rowsOf(drawn, terminal);
      let text = isHidden ? "" : HIDE_CURSOR;
      isHidden = true;
      if (up > 0) text += `\u001b[${up}A`;
      text += "\r";
      // Long lines above wrap over what stands there: it is cleared before.
      if (above.length > 0) text += CLEAR_BELOW;
      for (const line of above) text += `${line}${CLEAR_LINE}\n`;
      for (const line of lines) text += `${line}${CLEAR_LINE}\n`;
      terminal.write(text + CLEAR_BELOW);
      drawn = lines.map((line) => textWidth(stripVTControlCharacters(line)));
    },
    end() {
      if (isHidden) terminal.write(SHOW_CURSOR);
      isHidden = false;
      drawn = [];
    },
  };
}

/** Rows above the cursor that belong to the last drawing; more cannot be reached than the terminal is high. */
function rowsOf(widths: readonly number[], terminal: Terminal): number {
  const columns = terminal.columns();
  let rows = 0;
  for (const width of widths) rows += Math.max(1, Math.ceil(width / columns));
  return Math.min(rows, terminal.rows() - 1);
}
