import type { CliIo } from "../command-line/command.ts";

/** Colours by purpose. Each takes plain text; without colours it returns the text unchanged. */
export interface Style {
  good(text: string): string;
  bad(text: string): string;
  busy(text: string): string;
  notice(text: string): string;
  dim(text: string): string;
  strong(text: string): string;
}

/** Colours for a stream: off if it is not a terminal, if TERM is dumb, or with NO_COLOR or `--no-color`. */
export function styleFor(stream: { isTTY?: boolean }, io: CliIo, noColor: boolean): Style {
  const { environment } = io;
  const refused = noColor || (environment["NO_COLOR"] ?? "") !== "" || environment["TERM"] === "dumb";
  return stream.isTTY === true && !refused ? COLORS : PLAIN;
}

/** No colours. */
export const PLAIN: Style = { good: same, bad: same, busy: same, notice: same, dim: same, strong: same };

/** The sixteen colours that every terminal has, so that they fit the reader's own theme. */
export const COLORS: Style = {
  good: sgr(32, 39),
  bad: sgr(31, 39),
  busy: sgr(36, 39),
  notice: sgr(33, 39),
  dim: sgr(2, 22),
  strong: sgr(1, 22),
};

function same(text: string): string {
  return text;
}

function sgr(on: number, off: number): (text: string) => string {
  return (text) => `\u001b[${on}m${text}\u001b[${off}m`;
}
