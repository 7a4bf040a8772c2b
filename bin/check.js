// `npm run check`: types, format, lint, import table and unused code, as many checks at a time as there are processors. Those
// that take longest begin first. A check's output is shown if it fails.
//
// Biome formats and lints. Oxlint is here only for the rules that need types: a promise that nothing waits for is a lost error.
// It and the compiler are native programs (TypeScript 7): together they take a third of the time of ESLint and TypeScript 6.
// Version 6 stays for the import table and two tests, which read syntax trees; version 7 has no such interface yet.
import { spawn, spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { ROOT } from "./parts.js";

/** What it checks, and the command. */
const CHECKS = [
  ["lint with types", ["node_modules/oxlint/bin/oxlint", "."]],
  ["types", ["bin/build.js", "program", "page", "tests"]],
  ["types of the page", ["node_modules/@typescript/native/bin/tsc", "-p", "gui/tsconfig.json"]],
  ["format and lint", ["node_modules/@biomejs/biome/bin/biome", "check", "."]],
  ["format and lint of Python", ["bin/lint-python.js"]],
  [
    "import table",
    [
      "node_modules/dependency-cruiser/bin/dependency-cruise.mjs",
      "src",
      "gui/src",
      "--config",
      ".dependency-cruiser.cjs",
    ],
  ],
  ["unused code", ["node_modules/knip/bin/knip.js"]],
];

/** Runs one, and gives its output. */
function run(args) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd: ROOT, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text) => {
        output += text;
      });
    }
    child.on("error", reject);
    child.on("close", (code) => resolve({ isGood: code === 0, output }));
  });
}

// Before all: what the checks are made of.
const { status } = spawnSync(process.execPath, [join(ROOT, "bin/build.js")], { stdio: "inherit" });
if (status !== 0) process.exit(1);

const queue = [...CHECKS];
async function lane() {
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    const [what, args] = next;
    const began = performance.now();
    const { isGood, output } = await run(args);
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    process.stdout.write(`${isGood ? "✔" : "✖"} ${what} (${seconds} s)\n${isGood ? "" : output}`);
    if (!isGood) process.exitCode = 1;
  }
}
await Promise.all(Array.from({ length: availableParallelism() }, lane));
