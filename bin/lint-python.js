// `node bin/lint-python.js`: part of `npm run check`. Lints the Python files with ruff and compares its format; `--write` formats
// it. Ruff is here as WebAssembly, so that a machine without Python checks the same.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PositionEncoding, Workspace } from "@astral-sh/ruff-wasm-nodejs";

const FOLDERS = ["src/tools/python/harness", "src/tools/sandbox"];

const ruff = new Workspace(
  {
    // What harness.ts says. Syntax of a later version is an error.
    "target-version": "py38",
    "line-length": 120,
    lint: {
      select: ["E", "F", "W", "I", "B", "N", "PIE", "RET", "RUF", "UP"],
      // Not wanted: %-formatting replaced, and the check of the version, because the bootstrap must be Python 2 as well;
      // methods called otherwise than those of the `ast` module; "Error" at the end of each exception.
      ignore: ["UP031", "UP036", "N802", "N815", "N818"],
    },
  },
  PositionEncoding.Utf16,
);

const problems = [];
const files = FOLDERS.flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)));
for (const file of files.filter((name) => name.endsWith(".py"))) {
  const text = readFileSync(file, "utf8");
  for (const { code, message, start_location: start } of ruff.check(text)) {
    problems.push(`${file}:${start.row}:${start.column} ${code ?? "syntax"} ${message}`);
  }
  const formatted = ruff.format(text);
  if (formatted === text) continue;
  if (process.argv.includes("--write")) writeFileSync(file, formatted);
  else problems.push(`${file}: not formatted. Run \`npm run format\``);
}
if (problems.length > 0) {
  process.stderr.write(`${problems.join("\n")}\n`);
  process.exit(1);
}
