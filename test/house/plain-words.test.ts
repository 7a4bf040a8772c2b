import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

/*
 * Words that make a sentence harder to read than it has to be, and what to write in their place. Comments of the program, the
 * page, the benchmarks and the tests, the titles of tests, and the pages of docs/ do without them.
 */

const ROOT = join(import.meta.dirname, "../../..");

const BANNED: readonly (readonly [words: RegExp, instead: string])[] = [
  [/\bwhoever\b/i, "name the caller, the user, the worker …"],
  [/\b(?:somebody|anybody)\b/i, "name who: a caller, a user, another process"],
  [/\bnobody\b/i, "no caller, no worker, no user …; or say what does not happen"],
  [/\b(?:there is|that is|one that is) none\b/i, "undefined if …, missing, not found, invalid"],
  [/\bwhat there is\b/i, "name it: the entries, the workers …"],
  [/\b(?:tells|told) of\b/i, "reports, logs, records, returns"],
  [/\b(?:hears|heard) of\b/i, "receives, is notified of, learns of"],
  [/\bnone of ours\b/i, "not from flow, unknown, invalid"],
  [/\bwithout a word\b/i, "silently"],
];

test("comments, titles of tests and docs are in plain words", () => {
  const found = [...sources("src"), ...sources("gui/src"), ...sources("bench"), ...sources("test")].flatMap((name) =>
    findIn(name, comments(read(name))),
  );
  found.push(...sources("test").flatMap((name) => findIn(name, titles(read(name)))));
  found.push(...pages().flatMap((name) => findIn(name, prose(read(name)))));
  assert.deepEqual(found, []);
});

function findIn(name: string, lines: readonly (readonly [line: number, text: string])[]): string[] {
  return lines.flatMap(([line, text]) =>
    BANNED.filter(([words]) => words.test(text)).map(
      ([words, instead]) => `${name}:${line}: "${words.exec(text)?.[0]}" is banned; ${instead}`,
    ),
  );
}

/** Whole-line comments, which begin with `//`, `/*` or `*`, and comments at the end of a line of code. */
function comments(text: string): [number, string][] {
  return numbered(text).flatMap(([line, code]) => {
    const comment = /^\s*(?:\/\/|\/\*|\*)(.*)|\S\s\/\/ ([^"'`]*)$/.exec(code);
    return comment === null ? [] : [[line, comment[1] ?? comment[2] ?? ""]];
  });
}

function titles(text: string): [number, string][] {
  return numbered(text).flatMap(([line, code]) => {
    const title = /\b(?:test|it|describe|suite)\((["'`])(.*)\1/.exec(code)?.[2];
    return title === undefined ? [] : [[line, title]];
  });
}

/** A page without its code blocks and code spans. */
function prose(markdown: string): [number, string][] {
  let isCode = false;
  return numbered(markdown).flatMap(([line, text]) => {
    if (text.trimStart().startsWith("```")) isCode = !isCode;
    return isCode ? [] : [[line, text.replace(/`[^`]*`/g, "")]];
  });
}

function numbered(text: string): [number, string][] {
  return text.split("\n").map((line, index) => [index + 1, line]);
}

function sources(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.tsx?$/.test(name) && !name.endsWith(".d.ts") && !name.includes("node_modules"))
    .map((name) => `${folder}/${name}`)
    .sort();
}

function pages(): string[] {
  const docs = readdirSync(join(ROOT, "docs")).filter((name) => name.endsWith(".md"));
  return ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", ...docs.map((name) => `docs/${name}`)];
}

function read(file: string): string {
  return readFileSync(join(ROOT, file), "utf8");
}
