import { LOG_BYTES_MAX, LOG_LINE_CHARS_MAX, LOG_LINES_MAX, type TaskLog } from "../../schema/words/event.ts";

/** The log of a task run, on its way into events: the last lines, whatever their number. */
export interface RunLog {
  /** Adds a line without secrets. True: {@link news} has it. */
  add(line: string): boolean;
  /** The lines since the last call; undefined if there are none. */
  news(): TaskLog | undefined;
  /** The last lines of the run; undefined when it wrote nothing. */
  whole(): TaskLog | undefined;
}

/**
 * An empty log. With `isHidden` the lines are counted and not kept: what a task of a sensitive result writes is as sensitive as
 * that. A line of plain text costs about a microsecond, whether it is kept or makes room for a later one.
 */
export function createRunLog(isHidden: boolean): RunLog {
  /** Made with the first line: most runs write none. */
  let kept: { line: string; bytes: number }[] | undefined;
  let bytes = 0;
  let total = 0;
  let reported = 0;

  const from = () => total - (kept?.length ?? 0);
  return {
    add(text) {
      total += 1;
      if (isHidden) return false;
      const line = cut(text);
      const size = bytesOf(line);
      kept ??= [];
      kept.push({ line, bytes: size });
      bytes += size;
      while (kept.length > LOG_LINES_MAX || bytes > LOG_BYTES_MAX) bytes -= kept.shift()?.bytes ?? 0;
      return true;
    },
    news() {
      if (isHidden || kept === undefined || reported === total) return undefined;
      const first = Math.max(reported, from());
      reported = total;
      const lines = kept.slice(first - from()).map(({ line }) => line);
      return first === 0 ? { lines } : { lines, from: first };
    },
    whole() {
      if (total === 0) return undefined;
      const lines = (kept ?? []).map(({ line }) => line);
      const dropped = from();
      return dropped === 0 ? { lines } : { lines, dropped };
    },
  };
}

/** As it stands in an event: within quotes, with a comma. */
function bytesOf(line: string): number {
  return Buffer.byteLength(JSON.stringify(line)) + 1;
}

/** A line that is too long ends in `…`, and never in half a character. */
function cut(line: string): string {
  if (line.length <= LOG_LINE_CHARS_MAX) return line;
  const begin = line.slice(0, LOG_LINE_CHARS_MAX - 1);
  const last = begin.charCodeAt(begin.length - 1);
  return `${last >= 0xd800 && last <= 0xdbff ? begin.slice(0, -1) : begin}…`;
}
