// Second half of `npm run build`: one file of the program instead of some two hundred, its packages included. Loading the
// files one by one takes 0.13 s longer and 15 MB more, which is most of what a short `flow run` costs. What is loaded
// lazily (database driver, HTTP client, protocol SDK) stays in files of its own.
import { rmSync } from "node:fs";
import { build } from "esbuild";

rmSync("dist/flow", { recursive: true, force: true });
await build({
  // The heartbeat's thread begins with a file of its own, found beside the code that starts it.
  entryPoints: [
    { in: "src/main.ts", out: "main" },
    { in: "src/adapters/heartbeat-thread.ts", out: "heartbeat-thread" },
  ],
  outdir: "dist/flow",
  bundle: true,
  splitting: true,
  platform: "node",
  target: "node20.19",
  format: "esm",
  // The ES module of a package that has both: of a CommonJS one, `await import` would give nothing but `default`.
  mainFields: ["module", "main"],
  // Native code, and optional: looked for where the program is installed when a task first needs it.
  external: ["@duckdb/node-api"],
  sourcemap: true,
  sourcesContent: false,
  logLevel: "warning",
  // Packages in CommonJS ask for Node's modules by `require`, which an ES module does not have.
  banner: {
    js: 'import { createRequire as bundledRequire } from "node:module"; const require = bundledRequire(import.meta.url);',
  },
});
