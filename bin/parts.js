// The parts of a checkout that are made, what each is made of, and whether it is current. A stamp says what a part was made
// of: names, sizes and times of its files, which is cheap to compare, and a hash of their content for when only times differ.
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder of the checkout. */
export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));

const SHARED = ["package-lock.json", "tsconfig.json"];
const INSTALLED = "node_modules/.package-lock.json";

/** Part → the files and folders that it is made of, and a file that is written whenever it is made. In the order of making. */
const PARTS = {
  packages: { inputs: ["package-lock.json"], output: INSTALLED },
  program: { inputs: [...SHARED, "src", "bin/bundle.js"], output: "dist/flow/main.js" },
  page: {
    inputs: [...SHARED, "gui", "src/schema", "src/language", "playbooks/examples"],
    output: "dist/page/index.html",
  },
  tests: {
    inputs: [...SHARED, "src", "test", "bench", "docs", "playbooks", "gui", "drizzle.config.ts"],
    endings: [".ts", "tsconfig.json", "package-lock.json"],
    output: "dist/.tsbuildinfo",
  },
};

/** The names of all parts. */
export const PART_NAMES = Object.keys(PARTS);

const stampFile = join(ROOT, "dist/.set-up.json");

/** True when every one of these parts is there and was made of the files as they are now. */
export function isCurrent(names) {
  const stamps = readStamps();
  return names.every((name) => isPartCurrent(name, stamps));
}

/** Those of these parts that are to be made, in the order in which that is done. */
export function staleParts(names) {
  const stamps = readStamps();
  return PART_NAMES.filter((name) => names.includes(name) && !isPartCurrent(name, stamps));
}

function isPartCurrent(name, stamps) {
  const output = look(PARTS[name].output);
  if (output === undefined) return false;
  const stamp = stamps[name];
  // npm says itself what it has installed, whoever ran it.
  if (stamp === undefined || stamp.output !== output) return name === "packages" && arePackagesInstalled();
  const files = inputsOf(name);
  if (stamp.files === listing(files)) return true;
  if (stamp.content !== contentOf(files)) return false;
  // Times changed and nothing else: a branch was left and entered again, or files were copied.
  writeStamp(name, { ...stamp, files: listing(files) });
  return true;
}

/** What a part would be made of now. To be taken before it is made: what changes meanwhile makes it out of date. */
export function inputsStamp(name) {
  const files = inputsOf(name);
  return { files: listing(files), content: contentOf(files) };
}

/** Notes that a part was just made of this. */
export function markMade(name, inputs) {
  writeStamp(name, { ...inputs, output: look(PARTS[name].output) });
}

function arePackagesInstalled() {
  const inputs = inputsStamp("packages");
  const wanted = readJson("package-lock.json").packages ?? {};
  const installed = readJson(INSTALLED).packages ?? {};
  const isThere = ([path, { version, integrity, optional, devOptional }]) => {
    const found = installed[path];
    // Those of other machines are left out.
    if (found === undefined) return path === "" || optional === true || devOptional === true;
    return found.version === version && found.integrity === integrity;
  };
  if (!Object.entries(wanted).every(isThere)) return false;
  markMade("packages", inputs);
  return true;
}

/** Every file that a part is made of, with what tells a changed one, by its path from the root. */
function inputsOf(name) {
  const { inputs, endings } = PARTS[name];
  const files = [];
  for (const input of inputs) gather(input, files);
  return endings === undefined ? files : files.filter(({ path }) => endings.some((ending) => path.endsWith(ending)));
}

function gather(path, files) {
  const found = statSync(join(ROOT, path), { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isDirectory()) {
    files.push({ path, size: found.size, changed: found.mtimeMs });
    return;
  }
  for (const name of readdirSync(join(ROOT, path)).sort()) {
    // An editor's own files come and go.
    if (!name.startsWith(".") && !name.endsWith("~")) gather(`${path}/${name}`, files);
  }
}

function listing(files) {
  const hash = createHash("sha256");
  for (const { path, size, changed } of files) hash.update(`${path} ${size} ${changed}\n`);
  return hash.digest("hex");
}

function contentOf(files) {
  const hash = createHash("sha256");
  for (const { path, size } of files) hash.update(`${path} ${size}\n`).update(readFileSync(join(ROOT, path)));
  return hash.digest("hex");
}

/** A file's size and time, or undefined when there is none. */
function look(path) {
  const found = statSync(join(ROOT, path), { throwIfNoEntry: false });
  return found === undefined ? undefined : `${found.size} ${found.mtimeMs}`;
}

function readStamps() {
  try {
    return JSON.parse(readFileSync(stampFile, "utf8"));
  } catch {
    return {};
  }
}

function writeStamp(name, stamp) {
  mkdirSync(dirname(stampFile), { recursive: true });
  const draft = `${stampFile}.${process.pid}`;
  try {
    writeFileSync(draft, JSON.stringify({ ...readStamps(), [name]: stamp }));
    renameSync(draft, stampFile);
  } catch (error) {
    // A checkout that may only be read is compared by content each time.
    if (!["EACCES", "EROFS", "EPERM"].includes(error.code)) throw error;
  }
}

function readJson(path) {
  return JSON.parse(readFileSync(join(ROOT, path), "utf8"));
}
