// `npm run build:binary`: the program as one executable file, for machines without Node. It is a copy of the Node that runs
// this script with the bundle of `npm run build` inside (Node's single executable applications). The embedded PostgreSQL is
// not in it: its binaries are 40 MB of files that must lie in folders. Such a server needs FLOW_DATABASE_URL, and says so.
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { inject } from "postject";

/** Marks the place in Node's executable that says whether a program is inside. */
const FUSE = "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2";

const target = resolve(process.argv[2] ?? `dist/flow-${process.platform}-${process.arch}`);
const root = join(import.meta.dirname, "..");
if (process.platform !== "linux") {
  stop(
    `The executable is built on Linux only, this is ${process.platform}. Use the npm package or the container image`,
  );
}
const scratch = mkdtempSync(join(tmpdir(), "flow-binary-"));
try {
  await build();
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
const megabytes = (statSync(target).size / 2 ** 20).toFixed(0);
process.stdout.write(`${target}: ${megabytes} MiB, Node ${process.version}\n`);

async function build() {
  const packed = gzipSync(JSON.stringify(programFiles()), { level: 9 });
  writeFileSync(join(scratch, "program.gz"), packed);
  const config = {
    main: join(import.meta.dirname, "binary-entry.cjs"),
    output: join(scratch, "blob"),
    assets: { program: join(scratch, "program.gz") },
    disableExperimentalSEAWarning: true,
  };
  writeFileSync(join(scratch, "config.json"), JSON.stringify(config));
  execFileSync(process.execPath, ["--experimental-sea-config", join(scratch, "config.json")], { stdio: "pipe" });
  mkdirSync(dirname(target), { recursive: true });
  const draft = join(scratch, "flow");
  copyFileSync(process.execPath, draft);
  chmodSync(draft, 0o755);
  // Its library complains of section names in every build of Node, to no effect.
  console.warn = () => undefined;
  await inject(draft, "NODE_SEA_BLOB", readFileSync(config.output), { sentinelFuse: FUSE });
  // A file that runs cannot be written over, but it can be replaced.
  rmSync(target, { force: true });
  copyFileSync(draft, target);
  chmodSync(target, 0o755);
}

/** Everything that the program reads of itself, by its path from the package's root. */
function programFiles() {
  const { name, version, type } = JSON.parse(read("package.json"));
  const bundle = listed("dist/flow", ".js");
  if (!bundle.includes("dist/flow/main.js")) stop("There is no bundle in dist/flow. Run `npm run build` first");
  const page = [".html", ".js", ".css", ".svg"].flatMap((ending) => listed("dist/page", ending));
  const bundled = [...listed("playbooks/api_integration", ".yaml"), ...listed("playbooks/doctor", ".yaml")];
  const supplied = bundled.filter((path) => !path.endsWith(".test.yaml"));
  return {
    "package.json": JSON.stringify({ name, version, type }),
    // An ES module is loaded by `import()`, which only a file has.
    "start.cjs": 'import(require("node:url").pathToFileURL(process.argv[1]).href);\n',
    "playbooks/playbook.schema.json": read("playbooks/playbook.schema.json"),
    ...Object.fromEntries(
      [...bundle, ...page, ...listed("migrations", ".sql"), ...supplied].map((path) => [path, read(path)]),
    ),
  };
}

function listed(folder, ending) {
  const names = readdirSync(join(root, folder), { recursive: true, encoding: "utf8" });
  return names.filter((name) => name.endsWith(ending)).map((name) => join(folder, name));
}

function read(path) {
  return readFileSync(join(root, path), "utf8");
}

function stop(message) {
  process.stderr.write(`${message}.\n`);
  process.exit(1);
}
