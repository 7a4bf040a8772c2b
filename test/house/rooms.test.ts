import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import ts from "typescript";

/*
 * The house as a reader walks through it: folders that can be looked over, arrows between them that go one way, functions that
 * fit on a screen. What does not hold everywhere yet has a number that may only get smaller.
 */

const root = join(import.meta.dirname, "../../..");

/** Files of one folder, not counting those of the folders within it. */
const FOLDER_MAX = 20;
const FUNCTION_LINES_MAX = 70;
const FRAGMENT_LINES = 40;

/** Folders above the limit, circles of folders, functions above the limit, and fragments that are left. Lower it when you mend one. */
const LEFT = { folders: 0, circles: 0, functions: 0, fragments: 0 };

function sources(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.tsx?$/.test(name) && !name.endsWith(".d.ts") && !name.includes("node_modules"))
    .map((name) => `${folder}/${name}`);
}

const src = sources("src");
const page = sources("gui/src");
const bench = sources("bench");
const everything = [...src, ...page, ...bench, ...sources("test")];
const text = new Map([...src, ...page, ...bench].map((name) => [name, readFileSync(join(root, name), "utf8")]));

/** Every import of one of our files by another, types included. */
const arrows = [...text].flatMap(([from, code]) =>
  [...code.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*"(\.[^"]+)"/g)]
    .map(([, specifier]) => ({ from, to: join(dirname(from), specifier ?? "") }))
    .filter(({ to }) => text.has(to)),
);

test("no folder has more files than a reader can look over", () => {
  const count = new Map<string, number>();
  for (const name of everything) count.set(dirname(name), (count.get(dirname(name)) ?? 0) + 1);
  const large = [...count].filter(([, files]) => files > FOLDER_MAX).map(([name, files]) => `${name}: ${files} files`);
  atMost(LEFT.folders, large, `at most ${FOLDER_MAX} files: make a room for each subject`);
});

test("folders beside each other, and the files beside them, import one another in one direction only", () => {
  const parents = new Set(
    [...text.keys()].flatMap((name) => {
      const parts = name.split("/");
      return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join("/"));
    }),
  );
  const circles = [...parents].flatMap((parent) => circlesIn(parent));
  atMost(LEFT.circles, circles, "move the file that one of the two arrows leads to");
});

/** Pairs of rooms of one folder that reach each other. The files of the folder itself are one room, `*`. */
function circlesIn(parent: string): string[] {
  const room = (name: string): string | undefined => {
    if (!name.startsWith(`${parent}/`)) return undefined;
    const rest = name.slice(parent.length + 1).split("/");
    return rest.length === 1 ? "*" : rest[0];
  };
  const reaches = new Map<string, Map<string, string>>();
  for (const { from, to } of arrows) {
    const [here, there] = [room(from), room(to)];
    if (here === undefined || there === undefined || here === there) continue;
    const first = reaches.get(here) ?? new Map<string, string>();
    if (!first.has(there)) first.set(there, `${from} → ${to}`);
    reaches.set(here, first);
  }
  const rooms = [...reaches.keys()].sort();
  return rooms.flatMap((here) =>
    [...(reaches.get(here) ?? [])]
      .filter(([there]) => here < there && isReached(reaches, there, here))
      .map(([there, arrow]) => `${parent}: ${here} and ${there} (${arrow}, and a way back)`),
  );
}

function isReached(reaches: ReadonlyMap<string, ReadonlyMap<string, string>>, from: string, to: string): boolean {
  const seen = new Set([from]);
  for (const room of seen) for (const next of reaches.get(room)?.keys() ?? []) seen.add(next);
  return seen.has(to);
}

test("no function is longer than a screen", () => {
  const long = [...text]
    .filter(([name]) => !name.startsWith("bench/"))
    .flatMap(([name, code]) => longFunctions(name, code));
  atMost(LEFT.functions, long, `at most ${FUNCTION_LINES_MAX} lines: name its parts`);
});

function longFunctions(name: string, code: string): string[] {
  const source = ts.createSourceFile(name, code, ts.ScriptTarget.Latest, true);
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && "body" in node && node.body !== undefined) {
      const [start, end] = [node.getStart(source), node.end].map(
        (place) => source.getLineAndCharacterOfPosition(place).line,
      );
      const lines = (end ?? 0) - (start ?? 0) + 1;
      if (lines > FUNCTION_LINES_MAX)
        found.push(`${name}: ${node.name?.getText(source) ?? "a function"}, ${lines} lines`);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

test("no file is a fragment of its one neighbour", () => {
  const importers = new Map<string, Set<string>>();
  for (const { from, to } of arrows) importers.set(to, (importers.get(to) ?? new Set()).add(from));
  const fragments = [...importers]
    .filter(
      ([name, from]) => name.startsWith("src/") && from.size === 1 && dirname([...from][0] ?? "") === dirname(name),
    )
    .filter(([name]) => (text.get(name)?.split("\n").length ?? 0) - 1 < FRAGMENT_LINES)
    .map(([name, from]) => `${name} → ${[...from][0]}`);
  atMost(LEFT.fragments, fragments, "move it into the file that uses it");
});

test("every folder of src is in ARCHITECTURE.md's import table", () => {
  const table = readFileSync(join(root, ".dependency-cruiser.cjs"), "utf8");
  const missing = readdirSync(join(root, "src"), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !table.includes(`  ${entry.name}: {`))
    .map(({ name }) => name);
  assert.deepEqual(missing, []);
  assert.ok(existsSync(join(root, "ARCHITECTURE.md")));
});

function atMost(limit: number, found: readonly string[], instead: string): void {
  assert.ok(
    found.length <= limit,
    `${found.length} are left, ${limit} were; ${instead}:\n${[...found].sort().join("\n")}`,
  );
}
