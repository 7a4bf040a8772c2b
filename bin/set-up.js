// Installs and builds what is missing or out of date in a checkout, once: of several that come at the same time one works
// and the others wait for it. It tells in one line what it does. Everything is told on standard error, so that what the
// program itself prints can be piped.
import { spawn } from "node:child_process";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { inputsStamp, markMade, ROOT, staleParts } from "./parts.js";
import { takeLock } from "./set-up-lock.js";

/** Set for what a set-up starts. */
const WITHIN = "FLOW_SET_UP";
const TAIL_LINES = 30;

const WORK = {
  packages: { doing: "installing packages (npm ci)", done: "packages installed", make: () => installPackages() },
  program: { doing: "building the program", done: "program built", make: () => node("bin/bundle.js") },
  page: {
    doing: "building the page",
    done: "page built",
    make: () => node("node_modules/vite/bin/vite.js", "build", "gui", "--logLevel", "warn"),
  },
  tests: {
    doing: "compiling the tests",
    done: "tests compiled",
    make: async () => {
      await node("node_modules/@typescript/native/bin/tsc", "-p", "tsconfig.json");
      removeOrphans();
    },
  },
};

/** Removes compiled files whose source is gone: the test runner would go on running a test that was moved or deleted. */
function removeOrphans() {
  for (const folder of ["src", "test", "bench"]) {
    const compiled = join(ROOT, "dist", folder);
    if (!existsSync(compiled)) continue;
    for (const name of readdirSync(compiled, { recursive: true, encoding: "utf8" })) {
      const source = name.match(/^(.*)\.js(\.map)?$/)?.[1];
      if (source !== undefined && !existsSync(join(ROOT, folder, `${source}.ts`))) rmSync(join(compiled, name));
    }
  }
}

/** True in a process that a set-up has started. */
export function isWithinSetUp() {
  return process.env[WITHIN] !== undefined;
}

/** Makes those of these parts that are not current. Ends the process with 1, and the reason, when one cannot be made. */
export async function setUp(names) {
  const line = progressLine();
  const lock = await takeLock(() => line.doing("waiting for another set-up of this checkout"));
  const interrupt = () => process.exit(130);
  process.on("SIGINT", interrupt);
  process.on("SIGTERM", interrupt);
  try {
    for (const name of staleParts(names)) await make(name, line);
    line.end();
  } catch (error) {
    line.end();
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  } finally {
    lock.release();
    process.off("SIGINT", interrupt);
    process.off("SIGTERM", interrupt);
  }
}

async function make(name, line) {
  const { doing, done, make } = WORK[name];
  line.doing(doing);
  const inputs = inputsStamp(name);
  await make();
  markMade(name, inputs);
  line.done(done);
}

async function installPackages() {
  const flags = ["ci", "--include=dev", "--no-audit", "--no-fund", "--loglevel=error"];
  const [command, ...first] = npmCommand();
  try {
    await run(command, [...first, ...flags]);
  } catch (error) {
    const hint = "Is the registry reachable from here (npm config get registry; proxy settings)? Then try again.";
    throw new Error(`flow: the packages could not be installed by 'npm ci'. ${error.message}\n${hint}`);
  }
}

/** npm, as Node's own file where it is known: Windows starts no npm without a shell. */
function npmCommand() {
  const beside = dirname(process.execPath);
  const places = [
    process.env["npm_execpath"] ?? "",
    join(beside, "node_modules/npm/bin/npm-cli.js"),
    join(beside, "../lib/node_modules/npm/bin/npm-cli.js"),
  ];
  const file = places.find((place) => place.endsWith("npm-cli.js") && existsSync(place));
  return file === undefined ? ["npm"] : [process.execPath, file];
}

async function node(file, ...words) {
  try {
    await run(process.execPath, [file, ...words]);
  } catch (error) {
    throw new Error(`flow: 'node ${[file, ...words].join(" ")}' failed. ${error.message}`);
  }
}

/** Runs a program to its end; what it wrote is shown when it fails. */
function run(command, words) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, words, {
      cwd: ROOT,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, [WITHIN]: "1" },
    });
    let output = "";
    const keep = (chunk) => {
      output += chunk;
    };
    child.stdout.on("data", keep);
    child.stderr.on("data", keep);
    child.on("error", (error) => reject(new Error(`It could not be started: ${error.message}`)));
    child.on("close", (code, signal) => {
      if (code === 0) return resolve();
      const tail = output.trim().split("\n").slice(-TAIL_LINES).join("\n");
      reject(new Error(`It ended with ${code ?? signal}:\n${tail}`));
    });
  });
}

/** One line that says what is done and for how long; without a terminal, one line for each thing that was begun. */
function progressLine() {
  const { stderr } = process;
  const finished = [];
  let current;
  let since = Date.now();
  let timer;
  const seconds = () => `${((Date.now() - since) / 1000).toFixed(0)} s`;
  const draw = () => {
    const parts = current === undefined ? finished : [...finished, `${current}, ${seconds()}`];
    stderr.write(`\r\x1b[Kflow: ${parts.join("; ")}`.slice(0, Math.max(40, stderr.columns ?? 80) + 3));
  };
  return {
    doing(text) {
      if (current === text) return;
      current = text;
      since = Date.now();
      if (!stderr.isTTY) {
        stderr.write(`flow: ${text}\n`);
        return;
      }
      draw();
      timer ??= setInterval(draw, 1_000);
    },
    done(text) {
      finished.push(`${text} (${((Date.now() - since) / 1000).toFixed(1)} s)`);
      current = undefined;
    },
    end() {
      clearInterval(timer);
      if (stderr.isTTY && finished.length > 0) draw();
      if (stderr.isTTY && (finished.length > 0 || current !== undefined)) stderr.write("\n");
    },
  };
}
