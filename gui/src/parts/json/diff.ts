/** One place at which two values differ. */
export interface Change {
  kind: "added" | "removed" | "changed";
  /** `rows[3].name`; empty: the whole. */
  path: string;
  before: unknown;
  after: unknown;
}

/** What differs; `isCut`: there is more. */
export interface Difference {
  changes: Change[];
  isCut: boolean;
}

/** Most differences that are worth reading. */
const CHANGES_MAX = 500;
/** Levels that are looked into: deeper ones are compared as a whole. */
const DEPTH_MAX = 60;

/** Where `after` differs from `before`, in the order of `before`. Lists are compared place by place from both ends. */
export function jsonDiff(before: unknown, after: unknown): Difference {
  const found: Difference = { changes: [], isCut: false };
  compare(before, after, "", 0, found);
  return found;
}

function compare(before: unknown, after: unknown, path: string, depth: number, found: Difference): void {
  if (found.isCut || before === after) return;
  const goesOn = depth < DEPTH_MAX;
  if (goesOn && Array.isArray(before) && Array.isArray(after)) compareLists(before, after, path, depth, found);
  else if (goesOn && isRecord(before) && isRecord(after)) compareRecords(before, after, path, depth, found);
  // Numbers, texts and such differ, as do values of two sorts. What is too deep is compared by its text.
  else if (goesOn || JSON.stringify(before) !== JSON.stringify(after))
    add(found, { kind: "changed", path, before, after });
}

function compareRecords(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
  path: string,
  depth: number,
  found: Difference,
): void {
  for (const key of Object.keys(before)) {
    const at = keyPath(path, key);
    if (Object.hasOwn(after, key)) compare(before[key], after[key], at, depth + 1, found);
    else add(found, { kind: "removed", path: at, before: before[key], after: undefined });
    if (found.isCut) return;
  }
  for (const key of Object.keys(after)) {
    if (!Object.hasOwn(before, key)) {
      add(found, { kind: "added", path: keyPath(path, key), before: undefined, after: after[key] });
    }
    if (found.isCut) return;
  }
}

/** What was put in or taken out somewhere moves all that follows: the ends that are the same are left out first. */
function compareLists(
  before: readonly unknown[],
  after: readonly unknown[],
  path: string,
  depth: number,
  found: Difference,
): void {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && isSame(before[start], after[start])) start += 1;
  let end = 0;
  while (end < shorter - start && isSame(before.at(-1 - end), after.at(-1 - end))) end += 1;
  const both = shorter - end;
  for (let index = start; index < both && !found.isCut; index += 1) {
    compare(before[index], after[index], `${path}[${index}]`, depth + 1, found);
  }
  for (let index = Math.max(start, both); index < before.length - end && !found.isCut; index += 1) {
    add(found, { kind: "removed", path: `${path}[${index}]`, before: before[index], after: undefined });
  }
  for (let index = Math.max(start, both); index < after.length - end && !found.isCut; index += 1) {
    add(found, { kind: "added", path: `${path}[${index}]`, before: undefined, after: after[index] });
  }
}

/** Whether two values of JSON are the same, in whatever order their keys are. Looks for no ends, as that would look at nested lists again and again. */
export function isSame(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((value, index) => isSame(value, other[index]));
  }
  if (!isRecord(one) || !isRecord(other)) return false;
  const keys = Object.keys(one);
  if (keys.length !== Object.keys(other).length) return false;
  return keys.every((key) => Object.hasOwn(other, key) && isSame(one[key], other[key]));
}

function add(found: Difference, change: Change): void {
  if (found.changes.length === CHANGES_MAX) found.isCut = true;
  else found.changes.push(change);
}

function keyPath(path: string, key: string): string {
  if (!/^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path === "" ? key : `${path}.${key}`;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
