import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { packagePath } from "../../src/platform/system/package-file.ts";
import { copyOf, createDatabase, databaseUrl, type Templates } from "../support/database/cluster.ts";
import { ownDatabase } from "../support/engine/key-ring.ts";
import { MAIN } from "../support/service/cli-process.ts";

/*
 * A run starts hundreds of servers and workers, and half of a start is loading code: finding some hundred files of the bundle and
 * compiling them. So the bundle is joined to one script, which V8 loads with the code that it compiled for a server before: 0.27 s of
 * processor time until it is ready instead of 0.53. It is made once for each bundle. Commands, and the tests of `deploy`, run the
 * bundle itself: an ES module takes no such code in Node 20.
 */

/** Where the tests find the program for services; unset: they start the one that commands run. */
const VARIABLE = "FLOW_TEST_SERVICE_PROGRAM";
/** Of a bundle that was replaced; another run may still use it. */
const KEEP_MS = 24 * 60 * 60_000;

/** Has the test files of this run start services by the joined program. Does nothing where the bundle is not of the current code. */
export async function prepareServiceProgram(): Promise<void> {
  const bundle = packagePath("dist/flow/main.js");
  if (MAIN !== bundle) return;
  // It names the files that it imports, and these the others, each by its content.
  const hash = createHash("sha256").update(readFileSync(bundle)).update(process.version).digest("hex").slice(0, 16);
  const all = packagePath("dist/flow-services");
  const folder = join(all, hash);
  if (!existsSync(folder)) {
    removeOld(all);
    mkdirSync(all, { recursive: true });
    const draft = mkdtempSync(join(all, "draft-"));
    await joinBundle(bundle, draft);
    await warm(draft);
    try {
      renameSync(draft, folder);
    } catch (error) {
      rmSync(draft, { recursive: true, force: true });
      // Another run was faster.
      if (!existsSync(folder)) throw error;
    }
  }
  process.env[VARIABLE] = join(folder, "main.js");
}

function removeOld(folder: string): void {
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder)) {
    const place = join(folder, name);
    if (Date.now() - statSync(place).mtimeMs > KEEP_MS) rmSync(place, { recursive: true, force: true });
  }
}

/** Writes the script, and the modules that load it: `main.js` with the compiled code, `warm.js` without, to write that at its end. */
async function joinBundle(bundle: string, folder: string): Promise<void> {
  await build({
    entryPoints: [bundle],
    outfile: join(folder, "program.cjs"),
    bundle: true,
    platform: "node",
    target: "node20.19",
    format: "cjs",
    external: ["@duckdb/node-api"],
    // Threads, migrations and packages are looked for beside the bundle.
    define: { "import.meta.url": JSON.stringify(pathToFileURL(bundle).href) },
    banner: { js: "(function (exports, require, module) {" },
    footer: { js: "})" },
    logLevel: "warning",
    plugins: [
      {
        name: "await",
        setup(context) {
          // A script cannot wait at its top: it gives the promise to the module that loads it.
          context.onLoad({ filter: /dist\/flow\/main\.js$/ }, ({ path }) => {
            const text = readFileSync(path, "utf8");
            const contents = text.replace(
              /^(process\.exitCode = await runCli[\s\S]*?\.unref\(\);)$/m,
              "export const ended = (async () => {\n$1\n})();",
            );
            if (contents === text)
              throw new Error(`${path} does not end with the call of runCli that is expected here.`);
            return { contents, loader: "js" };
          });
        },
      },
    ],
  });
  await writeFile(join(folder, "main.js"), loader("readFileSync(`${file}.cache`)", ""));
  await writeFile(
    join(folder, "warm.js"),
    loader("undefined", 'process.on("exit", () => writeFileSync(`${file}.cache`, script.createCachedData()));\n'),
  );
}

/** A module that runs the script with this compiled code. */
function loader(cachedData: string, atEnd: string): string {
  return `import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { constants, Script } from "node:vm";
const file = join(import.meta.dirname, "program.cjs");
const module = { exports: {} };
// All of it is ASCII. So the text is not copied into the heap.
const script = new Script(readFileSync(file, "latin1"), {
  filename: file,
  cachedData: ${cachedData},
  importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
});
${atEnd}script.runInThisContext()(module.exports, createRequire(file), module);
await module.exports.ended;
`;
}

/** Starts a server and stops it: what it has compiled then is kept. */
async function warm(folder: string): Promise<void> {
  const { port, templates } = JSON.parse(process.env["FLOW_TEST_POSTGRES"] ?? "") as {
    port: number;
    templates: Templates;
  };
  const database = `test_${process.pid}_${randomBytes(6).toString("hex")}`;
  await createDatabase(port, database, copyOf(templates.served));
  const child = spawn(process.execPath, [join(folder, "warm.js"), "serve", "--role", "server", "--port", "0"], {
    cwd: folder,
    env: { PATH: process.env["PATH"], HOME: folder, ...ownDatabase(databaseUrl(port, database)) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (text) => (said += String(text)));
  child.stdout.on("data", (text) => {
    said += String(text);
    if (said.includes("ready at")) child.kill("SIGTERM");
  });
  await once(child, "close");
  if (!existsSync(join(folder, "program.cjs.cache")) || !said.includes("ready at"))
    throw new Error(`The server that shows what services need did not run:\n${said}`);
}
