import { isJsonObject, type Json, own } from "./json.ts";

/*
 * `merge_path`: the part of RFC 9535 that leads to a place, `$.data.items`, `$['odd name'][0]`, `$.pages[*].rows`. Names,
 * indexes and `*`, no filters: it is followed wherever a manifest is read, in the engine too, and must cost no more than what
 * it finds.
 */

/** One step of a path: a name, an index (from the end when negative), or all. */
export type PathSegment = { name: string } | { index: number } | "*";

/** Why a text is no path, and at which of its characters (from 0). */
export interface PathProblem {
  at: number;
  message: string;
}

const SEGMENT =
  /\.(?<name>[A-Za-z_\u0080-\uffff][\w\u0080-\uffff-]*)|\.(?<star>\*)|\[\s*(?:(?<index>0|-?[1-9]\d{0,14})|(?<all>\*)|(?<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'))\s*\]/y;

/** The segments of a path, or what is wrong with it. */
export function parsePath(text: string): PathSegment[] | PathProblem {
  if (!text.startsWith("$")) return { at: 0, message: "a path begins with `$`" };
  const segments: PathSegment[] = [];
  SEGMENT.lastIndex = 1;
  while (SEGMENT.lastIndex < text.length) {
    const at = SEGMENT.lastIndex;
    const segment = segmentOf(SEGMENT.exec(text)?.groups);
    if (segment === undefined) return { at, message: "expected `.name`, `[0]`, `['name']` or `[*]`" };
    segments.push(segment);
  }
  return segments;
}

function segmentOf(groups: Record<string, string | undefined> | undefined): PathSegment | undefined {
  if (groups === undefined) return undefined;
  const { name, index, quoted } = groups;
  if (name !== undefined) return { name };
  if (index !== undefined) return { index: Number(index) };
  if (quoted === undefined) return "*";
  const inner = quoted.slice(1, -1);
  // A text in single quotes is one in double quotes but for the two of them.
  const json = quoted.startsWith('"') ? inner : inner.replaceAll("\\'", "'").replaceAll('"', '\\"');
  try {
    return { name: JSON.parse(`"${json}"`) as string };
  } catch {
    return undefined;
  }
}

/** The values at the path, in order; empty if the path leads out of the value. */
export function valuesAt(path: readonly PathSegment[], value: Json): Json[] {
  let found = [value];
  for (const segment of path) found = found.flatMap((at) => step(segment, at));
  return found;
}

function step(segment: PathSegment, value: Json): Json[] {
  if (segment === "*") {
    if (Array.isArray(value)) return value;
    return isJsonObject(value) ? Object.values(value) : [];
  }
  const next = "index" in segment ? item(value, segment.index) : field(value, segment.name);
  return next === undefined ? [] : [next];
}

function item(value: Json, index: number): Json | undefined {
  return Array.isArray(value) ? value.at(index) : undefined;
}

function field(value: Json, name: string): Json | undefined {
  return isJsonObject(value) ? (own(value, name) as Json | undefined) : undefined;
}
