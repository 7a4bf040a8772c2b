// What a single-file executable starts with. Node runs one CommonJS script out of the executable and nothing else: neither
// ES modules nor files loaded lazily. So the program unpacks itself once per version into the cache folder of its user and
// runs from there; the first start takes 0.1 s longer, later ones find it.
const { createHash } = require("node:crypto");
const { existsSync, lstatSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } = require("node:fs");
const { createRequire } = require("node:module");
const { tmpdir } = require("node:os");
const { dirname, join, sep } = require("node:path");
const { getAsset } = require("node:sea");
const { gunzipSync } = require("node:zlib");

const packed = Buffer.from(getAsset("program"));
const name = `flow-${createHash("sha256").update(packed).digest("hex").slice(0, 32)}`;
const root = unpacked();

// Node puts the executable where the script stands otherwise. A process that the program starts of itself, by
// `process.execPath` and the script's path, arrives here with that path as its first argument.
const inside = process.argv[2]?.startsWith(root + sep) === true;
process.argv[1] = inside ? process.argv.splice(2, 1)[0] : join(root, "dist/flow/main.js");
createRequire(join(root, "package.json"))("./start.cjs");

/** The folder with the program's files, made where it is not there. */
function unpacked() {
  const problems = [];
  for (const folder of folders()) {
    try {
      return unpackInto(folder);
    } catch (error) {
      problems.push(error.message);
    }
  }
  const hint = "Set XDG_CACHE_HOME to a folder that this user can write, about 4 MB";
  process.stderr.write(`flow: cannot unpack the program: ${problems.join("; ")}. ${hint}.\n`);
  process.exit(1);
}

/**
 * Where to unpack: the user's cache; where there is none (a service account, a read-only home), a folder of the user's own
 * among the temporary ones. A user without an entry in the system's list has an id all the same.
 */
function folders() {
  const { XDG_CACHE_HOME, HOME } = process.env;
  const cache = XDG_CACHE_HOME || (HOME ? join(HOME, ".cache") : undefined);
  return [...(cache === undefined ? [] : [join(cache, "flow")]), join(tmpdir(), `flow-${process.getuid()}`)];
}

function unpackInto(folder) {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  refuseForeign(folder);
  const place = join(folder, name);
  if (existsSync(place)) return place;
  // Made beside its place and renamed when complete: a start that was interrupted leaves nothing that looks finished, and of
  // two starts at once the later one finds the folder taken by the same files.
  const draft = mkdtempSync(join(folder, "unpacking-"));
  try {
    for (const [path, text] of Object.entries(JSON.parse(gunzipSync(packed).toString("utf8")))) {
      mkdirSync(join(draft, dirname(path)), { recursive: true });
      writeFileSync(join(draft, path), text);
    }
    renameSync(draft, place);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    if (!existsSync(place)) throw error;
  }
  return place;
}

/** Whoever else may write here may choose what this user runs. */
function refuseForeign(folder) {
  const found = lstatSync(folder);
  if (!found.isDirectory() || found.uid !== process.getuid() || (found.mode & 0o022) !== 0) {
    throw new Error(`${folder} is no folder that this user alone can write`);
  }
}
