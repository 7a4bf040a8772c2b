// Half of `npm run build`: one file of the program instead of some two hundred, its packages included. Loading the
// files one by one takes 0.13 s longer and 15 MB more, which is most of what a short `flow run` costs. What is loaded
// lazily (database driver, HTTP client, protocol SDK) stays in files of its own.
//
// A service that runs out of this folder loads such a file when it first needs it, perhaps after the next build. So a build
// replaces the entries, adds the files that are new, and removes what no build of the last day had. `--clean` removes all
// that is not of this build: for what is packed and sent elsewhere.
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { build } from "esbuild";

const KEEP_MS = 24 * 60 * 60_000;
const folder = "dist/flow";

const pythonFiles = ["src/tools/python/harness", "src/tools/sandbox"].flatMap((place) =>
  readdirSync(place)
    .filter((name) => name.endsWith(".py"))
    .map((name) => [name, readFileSync(join(place, name), "utf8")]),
);

const { outputFiles } = await build({
  // A thread begins with a file of its own, found beside the code that starts it.
  entryPoints: [
    { in: "src/main.ts", out: "main" },
    { in: "src/adapters/server/heartbeat-thread.ts", out: "heartbeat-thread" },
    { in: "src/services/catalog/document-thread.ts", out: "document-thread" },
  ],
  outdir: folder,
  write: false,
  bundle: true,
  splitting: true,
  platform: "node",
  target: "node20.19",
  format: "esm",
  // The ES module of a package that has both: of a CommonJS one, `await import` would give nothing but `default`.
  mainFields: ["module", "main"],
  // Native code, and optional: looked for where the program is installed when a task first needs it.
  external: ["@duckdb/node-api"],
  // Python for `tools/python` and `tools/sandbox`: part of a bundled file, so that it fits the program that runs whatever is installed later.
  define: {
    BUNDLED_PYTHON: JSON.stringify(Object.fromEntries(pythonFiles)),
  },
  sourcemap: true,
  sourcesContent: false,
  logLevel: "warning",
  // Packages in CommonJS ask for Node's modules by `require`, which an ES module does not have.
  banner: {
    js: 'import { createRequire as bundledRequire } from "node:module"; const require = bundledRequire(import.meta.url);',
  },
});

mkdirSync(folder, { recursive: true });
const now = new Date();
// Files that others import have their content's hash in their names. The entries have not, and come last.
const isEntry = ({ path }) => ["main.js", "heartbeat-thread.js", "document-thread.js"].includes(basename(path));
for (const file of [...outputFiles.filter((file) => !isEntry(file)), ...outputFiles.filter(isEntry)]) {
  const place = join(folder, basename(file.path));
  const size = statSync(place, { throwIfNoEntry: false })?.size;
  if (!isEntry(file) && size === file.contents.length) {
    utimesSync(place, now, now);
    continue;
  }
  const draft = `${place}.${process.pid}`;
  writeFileSync(draft, file.contents);
  renameSync(draft, place);
}
const names = new Set(outputFiles.map(({ path }) => basename(path)));
const oldest = process.argv.includes("--clean") ? Number.POSITIVE_INFINITY : Date.now() - KEEP_MS;
for (const name of readdirSync(folder)) {
  const place = join(folder, name);
  if (!names.has(name) && statSync(place).mtimeMs < oldest) rmSync(place, { force: true });
}
