import { unreadableRows } from "./rows.ts";

/** Longest text of one row, characters. */
const ROW_CHARS_MAX = 16 * 1024 * 1024;

/**
 * The texts of the objects in a JSON list, one by one, as the text arrives: of the list at `path` (keys from the root), without
 * a path of the top-level list, or objects one after the other (NDJSON). Text after the list is not read. Throws a
 * `transferFailure` of kind `parse` if the text ends within a row or has no such list; the caller parses the rows.
 */
export async function* jsonRows(text: AsyncIterable<string>, path: readonly string[]): AsyncGenerator<string> {
  const scan = new JsonRowScan(path);
  for await (const chunk of text) {
    yield* scan.read(chunk);
    if (scan.isOver) return;
  }
  scan.end();
}

const QUOTE = 34;
const COMMA = 44;
const COLON = 58;
const OPEN_LIST = 91;
const BACKSLASH = 92;
const CLOSE_LIST = 93;
const OPEN_MAP = 123;
const CLOSE_MAP = 125;

/** Where in the text we are. Holds the piece of a row or key whose end has not come yet. */
class JsonRowScan {
  isOver = false;
  readonly #path: readonly string[];
  #depth = 0;
  #inString = false;
  #escaped = false;
  /** Depth of the rows' list; undefined until it is found. */
  #base: number | undefined;
  /** What came of the row or key that is open, undefined between them. */
  #piece: string | undefined;
  /** How many keys of the path we are inside of. */
  #matched = 0;
  #expectsKey = false;
  /** The key that was read last is the next of the path: its value begins. */
  #onPath = false;

  constructor(path: readonly string[]) {
    this.#path = path;
  }

  *read(chunk: string): Generator<string> {
    let from = 0;
    for (let at = 0; at < chunk.length && !this.isOver; at += 1) {
      const code = chunk.charCodeAt(at);
      if (this.#inString) {
        if (this.#readString(code) && this.#base === undefined && this.#piece !== undefined) {
          this.#readKey(this.#piece + chunk.slice(from, at + 1));
        }
        continue;
      }
      if (code === 32 || (code >= 9 && code <= 13) || code === 0xfeff) continue;
      if (this.#base === undefined && this.#seek(code)) {
        if (this.#piece !== undefined) from = at;
        continue;
      }
      if (this.#piece === undefined) {
        if (this.#isBetweenRows(code)) continue;
        this.#piece = "";
        from = at;
      }
      if (this.#isRowEnd(code)) {
        yield this.#piece + chunk.slice(from, at + 1);
        this.#piece = undefined;
      }
    }
    if (this.#piece === undefined) return;
    this.#piece += chunk.slice(from);
    if (this.#piece.length > ROW_CHARS_MAX)
      throw unreadableRows("A row of the source is longer than 16 Mi characters.");
  }

  end(): void {
    if (this.#base === undefined) throw this.#noList();
    // Objects one after the other end with the text; a list has its bracket.
    if (this.#piece !== undefined || this.#base > 0)
      throw unreadableRows("The source's JSON ends within a row or list: it was cut off.");
  }

  /** True at the end of the string. */
  #readString(code: number): boolean {
    if (this.#escaped) this.#escaped = false;
    else if (code === BACKSLASH) this.#escaped = true;
    else if (code === QUOTE) {
      this.#inString = false;
      return true;
    }
    return false;
  }

  #readKey(text: string): void {
    this.#piece = undefined;
    this.#expectsKey = false;
    this.#onPath = parsedKey(text) === this.#path[this.#matched];
  }

  /** One character on the way to the list. False: it begins the first of objects that stand one after the other. */
  #seek(code: number): boolean {
    const isRoot = this.#depth === 0;
    if (code === QUOTE) {
      this.#inString = true;
      if (this.#expectsKey && this.#depth === this.#matched + 1) this.#piece = "";
      else if (this.#onPath || isRoot) throw this.#noList();
    } else if (code === OPEN_LIST) {
      this.#depth += 1;
      const isList = isRoot ? this.#path.length === 0 : this.#onPath && this.#matched === this.#path.length - 1;
      if (isList) this.#base = this.#depth;
      else if (this.#onPath || isRoot) throw this.#noList();
    } else if (code === OPEN_MAP) {
      if (isRoot && this.#path.length === 0) {
        this.#base = 0;
        return false;
      }
      this.#enterMap(isRoot);
    } else if (code === CLOSE_LIST || code === CLOSE_MAP) {
      this.#depth -= 1;
      if (this.#depth <= this.#matched) throw this.#noList();
    } else if (code === COMMA) {
      if (this.#depth === this.#matched + 1) this.#expectsKey = true;
    } else if (code !== COLON && (this.#onPath || isRoot)) {
      throw this.#noList();
    }
    return true;
  }

  #enterMap(isRoot: boolean): void {
    this.#depth += 1;
    if (isRoot) {
      this.#expectsKey = true;
    } else if (this.#onPath) {
      if (this.#matched === this.#path.length - 1) throw this.#noList();
      this.#matched += 1;
      this.#expectsKey = true;
      this.#onPath = false;
    }
  }

  /** At the list's own depth: commas, its end, or (false) the beginning of a row. */
  #isBetweenRows(code: number): boolean {
    if (code === COMMA) return true;
    if (code === CLOSE_LIST && this.#base !== 0) {
      this.isOver = true;
      return true;
    }
    if (code === OPEN_MAP) return false;
    throw unreadableRows("The source's list has an item that is no object: every row is one, {column: value}.");
  }

  #isRowEnd(code: number): boolean {
    if (code === QUOTE) this.#inString = true;
    if (code === OPEN_MAP || code === OPEN_LIST) this.#depth += 1;
    if (code === CLOSE_MAP || code === CLOSE_LIST) this.#depth -= 1;
    return this.#depth === this.#base;
  }

  #noList(): Error {
    const where = this.#path.length === 0 ? "" : ` at "${this.#path.join(".")}"`;
    const hint = 'Name the place of the rows in the answer with "rows_path" (as in data.items) in the source.';
    return unreadableRows(`The source's answer has no list of objects${where}. ${hint}`);
  }
}

function parsedKey(text: string): string | undefined {
  try {
    return JSON.parse(text) as string;
  } catch {
    return undefined;
  }
}
