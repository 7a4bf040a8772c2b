import {
  ACCESS_ACTIONS,
  type AccessAction,
  type ActionFlags,
  gives,
  type PathRow,
  type PatternPart,
  type PlaybookPermission,
  patternParts,
} from "./access-rules.ts";

/** A path that a row is about and no other row allows. */
export interface Uncovered {
  action: AccessAction;
  /** The shortest there is. Absent: the patterns are too intricate to be compared. */
  path?: string;
}

/**
 * What these rows give that `own` rows do not give; undefined when they cover all of it. Exact, whatever the patterns and their
 * exceptions, also where several rows cover one together.
 */
export function uncoveredBy(
  own: readonly PlaybookPermission[],
  rows: readonly (PathRow & ActionFlags)[],
): Uncovered | undefined {
  const budget = { steps: STEPS_MAX };
  for (const row of rows) {
    for (const action of ACCESS_ACTIONS) {
      if (!gives(row, action)) continue;
      const giving = own.filter((one) => gives(one, action));
      const found = pathOutside(row, giving, budget);
      if (found.outcome === "outside") return { action, path: found.path };
      if (found.outcome === "unknown") return { action };
    }
  }
  return undefined;
}

/** Most places of patterns that are looked at: some 100 ms. Patterns that people write take some thousands. */
const STEPS_MAX = 400_000;

type Search = { outcome: "covered" } | { outcome: "outside"; path: string } | { outcome: "unknown" };

/**
 * Reads all patterns at once, character by character, breadth first, and looks for a path at whose end the first row fits and
 * none of the others does. Characters that no pattern names are all the same to them, so one stands for all. What was reached
 * in the same places before leads nowhere new.
 */
function pathOutside(row: PathRow, others: readonly PathRow[], budget: { steps: number }): Search {
  const lines = [row, ...others].flatMap(linesOf);
  const stranger = characterOutside(lines);
  let frontier: Reached[] = [
    { path: "", lines: lines.map((line, index) => ({ line, index, places: reach(line, [0]) })) },
  ];
  const seen = new Set(frontier.map(keyOf));
  while (frontier.length > 0) {
    const next: Reached[] = [];
    for (const at of frontier) {
      if (isOutside(row, at)) return { outcome: "outside", path: at.path };
      for (const character of charactersAt(at, stranger)) {
        const reached = {
          path: at.path + character,
          lines: at.lines.map((one) => step(one, character)).filter(isAlive),
        };
        for (const { places } of at.lines) budget.steps -= places.length;
        if (budget.steps < 0) return { outcome: "unknown" };
        const key = keyOf(reached);
        if (seen.has(key) || !reached.lines.some(({ line }) => line.of === row && !line.denies)) continue;
        seen.add(key);
        next.push(reached);
      }
    }
    frontier = next;
  }
  return { outcome: "covered" };
}

/** One line of a row's patterns. */
interface Line {
  of: PathRow;
  denies: boolean;
  parts: readonly PatternPart[];
}

/** A line, and the places in it that a path can have been read up to. */
interface LineReached {
  line: Line;
  index: number;
  places: readonly number[];
}

/** A path, and the lines that may still fit what begins with it. */
interface Reached {
  path: string;
  lines: readonly LineReached[];
}

function linesOf(row: PathRow): Line[] {
  const { playbookPath, allowPattern, denyPattern } = row;
  const patterns = (pattern: string | null, denies: boolean) =>
    (pattern?.split("\n") ?? []).map((line) => ({ of: row, denies, parts: patternParts(line) }));
  const exact = playbookPath === null ? [] : [{ of: row, denies: false, parts: playbookPath.split("") }];
  return [...exact, ...patterns(allowPattern, false), ...patterns(denyPattern, true)];
}

/** These places, and those behind wildcards, which may stand for nothing. */
function reach({ parts }: Line, places: readonly number[]): number[] {
  const reached = new Set<number>();
  for (const place of places) {
    let at = place;
    while (typeof parts[at] === "object") {
      reached.add(at);
      at += 1;
    }
    reached.add(at);
  }
  const ordered = [...reached].sort((left, right) => left - right);
  // What fits from an earlier place fits from a `**` further on too: nothing is lost, and patterns of many stay small.
  const from = ordered.findLastIndex((at) => isAnything(parts[at]));
  return ordered.slice(Math.max(0, from));
}

function isAnything(part: PatternPart | undefined): boolean {
  return typeof part === "object" && part.slashes;
}

function step({ line, index, places }: LineReached, character: string): LineReached {
  const next: number[] = [];
  for (const at of places) {
    const part = line.parts[at];
    if (part === character) next.push(at + 1);
    else if (typeof part === "object" && (part.slashes || character !== "/")) next.push(at);
  }
  return { line, index, places: reach(line, next) };
}

function isAlive({ places }: LineReached): boolean {
  return places.length > 0;
}

function isOutside(row: PathRow, { lines }: Reached): boolean {
  const allowing = new Set<PathRow>();
  const denying = new Set<PathRow>();
  for (const { line, places } of lines) {
    if (places.at(-1) === line.parts.length) (line.denies ? denying : allowing).add(line.of);
  }
  const fitting = [...allowing].filter((one) => !denying.has(one));
  return fitting.length === 1 && fitting[0] === row;
}

/** The characters that lead to different places from here: those that come next, a slash, and one for all others. */
function charactersAt({ lines }: Reached, stranger: string): Set<string> {
  const characters = new Set([stranger, "/"]);
  for (const { line, places } of lines) {
    for (const place of places) {
      const part = line.parts[place];
      if (typeof part === "string") characters.add(part);
    }
  }
  return characters;
}

/** A character that no pattern names; a letter where one is left, since people read it. */
function characterOutside(lines: readonly Line[]): string {
  const named = new Set(lines.flatMap(({ parts }) => parts));
  for (let code = "a".charCodeAt(0); ; code += 1) {
    const character = String.fromCharCode(code);
    if (!named.has(character)) return character;
  }
}

function keyOf({ lines }: Reached): string {
  return lines.map(({ index, places }) => `${index}:${places.join()}`).join(";");
}
