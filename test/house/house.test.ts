import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

/*
 * House rules that no linter knows. Each failure says what is wanted instead. The sources are read from the checkout: this
 * file runs from dist/test/house.
 */

const root = join(import.meta.dirname, "../../..");

interface Source {
  name: string;
  text: string;
  lines: string[];
}

function sources(folder: string): Source[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.tsx?$/.test(name) && !name.endsWith(".d.ts"))
    .map((name) => {
      const text = readFileSync(join(root, folder, name), "utf8");
      return { name: `${folder}/${name}`, text, lines: text.split("\n") };
    });
}

function banned(files: readonly Source[], pattern: RegExp, instead: string): string[] {
  return files.flatMap(({ name, lines }) =>
    lines.flatMap((line, index) => (pattern.test(line) ? [`${name}:${index + 1} ${instead}: ${line.trim()}`] : [])),
  );
}

const page = sources("gui/src");
const all = [...sources("src"), ...page];
const pure = all.filter(({ name }) => /^src\/(schema|language|engine)\//.test(name));

test("no file of src and of the page is longer than 400 lines", () => {
  const long = all.filter(({ lines }) => lines.length > 401).map(({ name, lines }) => `${name}: ${lines.length} lines`);
  assert.deepEqual(long, [], "split it: one idea per file");
});

test("the median file of src and of the page has at most 120 lines", () => {
  const lengths = all.map(({ lines }) => lines.length).sort((left, right) => left - right);
  const median = lengths[Math.floor(lengths.length / 2)] ?? 0;
  assert.ok(median <= 120, `the median is ${median}`);
});

test("every export of src and of the page has a doc comment", () => {
  const bare = all.flatMap(({ name, lines }) =>
    lines.flatMap((line, index) => {
      if (!/^export (abstract |async )?(const|function|class|interface|type) /.test(line)) return [];
      const before = lines[index - 1]?.trim() ?? "";
      const isDocumented = before.endsWith("*/") || isTypeOfDocumentedConst(lines, index);
      return isDocumented ? [] : [`${name}:${index + 1} ${line.trim()}`];
    }),
  );
  assert.deepEqual(bare, [], "say what it means, its shape, its unit, its default, what it throws");
});

/** `export type Kind = (typeof KINDS)[number];` right below the documented list of its values. */
function isTypeOfDocumentedConst(lines: readonly string[], index: number): boolean {
  return (
    /\(typeof [A-Z_]+\)\[number\];$/.test(lines[index] ?? "") || / = v\.InferOutput<typeof/.test(lines[index] ?? "")
  );
}

test("the pure core reads no clock, no chance and no environment", () => {
  const found = banned(
    pure,
    /\bDate\.now\(|\bnew Date\(\)|\bMath\.random\(|\bprocess\.|\bsetTimeout\(/,
    "take it as an argument",
  );
  assert.deepEqual(found, []);
});

test("only the configuration and the entry read the environment", () => {
  const others = all.filter(({ name }) => name !== "src/platform/config/config.ts" && name !== "src/main.ts");
  assert.deepEqual(banned(others, /\bprocess\.env\b/, "read it in platform/config/config.ts"), []);
});

test("nothing evaluates text as code", () => {
  assert.deepEqual(banned(all, /\beval\(|new Function\(|node:vm/, "interpret it"), []);
});

test("no file only re-exports", () => {
  assert.deepEqual(banned(all, /^export (\*|\{[^}]*\}) from /, "import the file that owns the thing"), []);
});

test("nothing is left for later in the code", () => {
  assert.deepEqual(banned(all, /\b(TODO|FIXME|XXX|HACK)\b/, "do it, or write it down as an issue"), []);
});

test("no test is skipped or switched to run alone", () => {
  const files = sources("test").filter(({ name }) => !name.startsWith("test/house/"));
  assert.deepEqual(
    banned(files, /\b(test|it|describe)\.(skip|only|todo)\b|\{ *(skip|only|todo): *true/, "run it or delete it"),
    [],
  );
});
