/** Stands in a path for an item of a list: every item has the same schema. */
export const ITEM = 0;

/** The cursor's place in a document, found in the text without parsing it. */
export interface YamlPlace {
  /** Keys and {@link ITEM}s from the top to the map that is written in. */
  path: (string | typeof ITEM)[];
  /** Whether a key is written, or the value of {@link key}. */
  at: "key" | "value";
  key: string | undefined;
  /** What is written of the word so far. */
  word: string;
  /** The keys of this map with the texts of their values. */
  siblings: ReadonlyMap<string, string>;
}

interface Line {
  /** Columns of its dashes. */
  dashes: number[];
  /** Column of its key, or of the text in its place. */
  column: number;
  key: string | undefined;
  value: string;
}

const LINE = /^(\s*)((?:- +|-$)*)(?:(["']?)([^\s:#"'{}[\],][^:#"'{}[\],]*)\3\s*:(?:\s+(.*))?)?(.*)$/;
/** Lines that are looked at above and below: an editor asks with each key. */
const LINES_MAX = 3_000;

/** The place of an offset in a text, or undefined within comments and texts of several lines. */
export function placeAt(text: string, offset: number): YamlPlace | undefined {
  const start = text.lastIndexOf("\n", offset - 1) + 1;
  const before = text.slice(start, offset);
  if (/(^|\s)#/.test(before)) return undefined;
  const end = text.indexOf("\n", offset);
  const rest = text.slice(offset, end === -1 ? text.length : end);
  const above = text.slice(0, start).split("\n").slice(0, -1).slice(-LINES_MAX);
  const below = end === -1 ? [] : text.slice(end + 1, end + 1 + LINES_MAX * 80).split("\n");
  const flow = flowPlace(before, rest);
  if (flow === null) return undefined;
  if (flow !== undefined) {
    const outer = blockPath(parsed(flow.head), above, below);
    return { ...flow.place, path: [...outer.path, ...flow.path] };
  }
  const line = parsed(before);
  const { path, siblings } = blockPath(line, above, below);
  if (line.key !== undefined && /:\s/.test(before)) {
    return { path, at: "value", key: line.key, word: line.value, siblings };
  }
  const word = before.slice(line.column);
  return /^["']?[\w.-]*$/.test(word) ? { path, at: "key", key: undefined, word, siblings } : undefined;
}

function parsed(line: string): Line {
  const [, indent = "", marks = "", , key, value = ""] = LINE.exec(line) ?? [];
  const dashes = [...marks.matchAll(/-/g)].map(({ index }) => indent.length + index);
  return { dashes, column: indent.length + marks.length, key: key?.trim(), value };
}

/** The path of the map that a line's key stands in, and the other keys there. */
function blockPath(line: Line, above: readonly string[], below: readonly string[]) {
  const path: YamlPlace["path"] = [];
  const siblings = new Map<string, string>();
  let { column, dashes } = line;
  let isInner = true;
  const leaveItems = (marks: number[]) => {
    for (const dash of marks.toReversed()) {
      path.unshift(ITEM);
      column = dash;
      isInner = false;
    }
    return marks.length > 0;
  };
  let fromItem = leaveItems(dashes);
  for (const text of above.toReversed()) {
    const one = parsed(text);
    if (one.key === undefined && one.dashes.length === 0) continue;
    if (isInner && one.column === column && one.key !== undefined && !fromItem) siblings.set(one.key, one.value);
    // A list may stand as far left as the key that it belongs to.
    const isParent = one.key !== undefined && (one.column < column || (fromItem && one.column === column));
    if (isParent && one.value.replace(/#.*/, "").trim() === "") {
      path.unshift(one.key ?? "");
      column = one.column;
      isInner = false;
      fromItem = leaveItems(one.dashes);
    } else if (one.column === column && !fromItem) {
      fromItem = leaveItems(one.dashes);
    }
    if (column === 0 && !fromItem) {
      if (!isInner) break;
    }
  }
  ({ column, dashes } = line);
  for (const text of below) {
    const one = parsed(text);
    if (one.key === undefined && one.dashes.length === 0) continue;
    if (one.column < column || (one.dashes[0] ?? column) < column) break;
    if (one.column === column && one.key !== undefined) siblings.set(one.key, one.value);
  }
  return { path, siblings };
}

/** The place within braces that a line has opened and not closed before the offset; null where nothing can be said of it. */
function flowPlace(before: string, rest: string) {
  const open: { at: number; brace: string }[] = [];
  let quote = "";
  for (const [at, sign] of [...before].entries()) {
    if (quote !== "") quote = sign === quote ? "" : quote;
    else if (sign === '"' || sign === "'") quote = sign;
    else if (sign === "{" || sign === "[") open.push({ at, brace: sign });
    else if (sign === "}" || sign === "]") open.pop();
  }
  const [first] = open;
  const inner = open.at(-1);
  if (first === undefined) return undefined;
  if (quote !== "" || inner?.brace !== "{") return null;
  const path: YamlPlace["path"] = [];
  for (const { at, brace } of open) {
    const key = /["']?([\w.-]+)["']?\s*:\s*$/.exec(before.slice(0, at))?.[1];
    if (key !== undefined) path.push(key);
    if (brace === "[") path.push(ITEM);
  }
  const siblings = new Map<string, string>();
  const inside = before.slice(inner.at + 1);
  const written = /(?:^|,)\s*([^,]*)$/.exec(inside)?.[1] ?? "";
  const others = inside.slice(0, inside.length - written.length) + rest.replace(/^[^,}]*/, "");
  for (const [, key = "", value = ""] of others.matchAll(/["']?([\w.-]+)["']?\s*:\s*([^,}]*)/g))
    siblings.set(key, value);
  const [, key, value = ""] = /^["']?([\w.-]+)["']?\s*:\s+(.*)$/.exec(written) ?? [];
  if (key === undefined && !/^["']?[\w.-]*$/.test(written)) return null;
  const place = { at: key === undefined ? "key" : "value", key, word: key === undefined ? written : value, siblings };
  // The key of the first brace is in the flow's path: the line before it counts for its column alone.
  return { head: before.slice(0, first.at), path, place: place as Omit<YamlPlace, "path"> };
}
