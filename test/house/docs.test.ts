import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { test } from "node:test";
import { describeConfig } from "../../src/platform/config/config.ts";

/* What can be checked of the pages without running their commands. */

const ROOT = join(import.meta.dirname, "../../..");
const PAGES = [
  "README.md",
  "ARCHITECTURE.md",
  "CONTRIBUTING.md",
  "playbooks/examples/README.md",
  ...readdirSync(join(ROOT, "docs"))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
];

test("docs/cli.md lists every setting, and only existing ones", () => {
  const settings = describeConfig({}).map(({ name }) => name);
  const rows = read("docs/cli.md").matchAll(/^\| (`[A-Z0-9_]+`(?:, `[A-Z0-9_]+`)*) \|/gm);
  const listed = [...rows].flatMap(([, names = ""]) => [...names.matchAll(/[A-Z0-9_]+/g)].map(([name]) => name));
  assert.deepEqual(listed.sort(), settings.sort());
});

test("every link of every page leads to a file, and to a heading where it names one", () => {
  for (const page of PAGES) {
    for (const [, target = ""] of withoutCode(read(page)).matchAll(/\]\((?!https?:)([^)\s]+)\)/g)) {
      const [path = "", anchor] = target.split("#");
      const file = path === "" ? page : relative(ROOT, join(ROOT, dirname(page), path));
      const isFolder = path.endsWith("/");
      const text = isFolder ? readdirSync(join(ROOT, file)).join("\n") : read(file);
      if (anchor !== undefined) assert.ok(anchors(text).includes(anchor), `${page}: ${file} has no heading #${anchor}`);
    }
  }
});

test("each attack of docs/security.md has a control, and tests that exist", () => {
  const [, table = ""] = read("docs/security.md").split("\n## Attacks and their tests\n");
  const rows = table.split("\n").filter((line) => line.startsWith("| "));
  assert.equal(rows[0], "| Attack | Control | Tests |");
  assert.ok(rows.length > 20, `${rows.length} rows`);
  for (const row of rows.slice(1)) {
    const [attack = "", control = "", tests = "", ...more] = row.slice(2, -2).split(" | ");
    assert.ok(attack !== "" && control !== "" && more.length === 0, `not three cells: ${row}`);
    const links = [...tests.matchAll(/\]\(\.\.\/([^)]+)\)/g)].map(([, file = ""]) => file);
    assert.notDeepEqual(links, [], `no test: ${attack}`);
    for (const file of links) assert.match(file, /^test\/.*\.test\.ts$/, attack);
    for (const file of links) assert.match(read(file), /\b(?:test|it)\(/, `${file} has no test`);
  }
});

test("every file of test/attacks is in docs/security.md's table", () => {
  const table = read("docs/security.md");
  const files = readdirSync(join(ROOT, "test/attacks")).filter((name) => name.endsWith(".test.ts"));
  const missing = files.filter((name) => !table.includes(`(../test/attacks/${name})`));
  assert.deepEqual(missing, []);
});

function read(file: string): string {
  return readFileSync(join(ROOT, file), "utf8");
}

/** Fenced blocks are text: a `# comment` in them is no heading, brackets are no link. */
function withoutCode(markdown: string): string {
  return markdown.replace(/^```.*?^```/gms, "").replace(/`[^`\n]*`/g, (code) => code.replace(/[[\]()]/g, ""));
}

/** Anchors of the headings, as code hosts make them: lower case, hyphens for spaces, letters, digits and hyphens alone. */
function anchors(markdown: string): string[] {
  const headings = markdown.replace(/^```.*?^```/gms, "").matchAll(/^#+ (.*)$/gm);
  return [...headings].map(([, title = ""]) =>
    title
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(" ", "-"),
  );
}
