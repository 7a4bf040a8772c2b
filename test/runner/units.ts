import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { TestUnit } from "./run-unit.ts";

/** Folders of tests without processes, servers and files that they change. */
const PURE = [
  "cli/progress/",
  "cli/terminal/",
  "cli/watch/",
  "engine/",
  "language/",
  "planning/",
  "platform/concurrency/",
  "platform/config/",
  "platform/crypto/",
  "platform/http/",
  "platform/telemetry/",
  "schema/",
  "services/orchestration/memory/",
  "services/orchestration/rounds/",
];

/** The files of each of these share a process too: they close what they opened, and put back what they changed. */
const SHARED = [
  "adapters/",
  "attacks/",
  "cli/",
  "deploy/",
  "doctor/",
  "examples/",
  "faults/",
  "gui/",
  "house/",
  "local/",
  "parity/",
  "platform/",
  "repositories/",
  "roles/",
  "routes/",
  "secrets/",
  "services/",
  "testing/",
  "tools/",
  "worker-role/",
  "worker/",
];

/** Begin first, in this order: the longest, so that none of them is left alone at the end. */
const FIRST = [
  "faults/",
  "gui/",
  "attacks/",
  "roles/",
  "cli/",
  "parity/",
  "deploy/",
  "routes/",
  "adapters/",
  "secrets/",
  // Of two threads: beside the last of the others it keeps both processors busy.
  "simulator/",
];

/** The longest that a test may take. */
const TEST_MS_MAX = 60_000;
/** Files with a test that has more than a minute of work, and what it may take on a busy machine. */
const LONGER_MS: Readonly<Record<string, number>> = {
  // Hundreds of simulated runs, or ten thousand, are one test.
  "simulator/simulator.test.js": 600_000,
};

/** True for a test file of the pure core. */
export function isPure(file: string): boolean {
  return PURE.some((folder) => file.startsWith(folder));
}

/** True for a test file of the pure core, and for the simulator, whose store is in memory. */
export function needsNoDatabase(file: string): boolean {
  return isPure(file) || file.startsWith("simulator/");
}

/**
 * The units of these files, in the order in which they begin. `apart` gives each file a process of its own. Throws where a folder
 * of pure tests is named that is not there: `isAll` tells that these are all files.
 */
export function unitsOf(
  root: string,
  files: readonly string[],
  { apart = false, isAll = false }: { apart?: boolean; isAll?: boolean } = {},
): TestUnit[] {
  if (apart) return files.map((file) => fileUnit(root, file));
  for (const folder of PURE) {
    if (isAll && !files.some((file) => file.startsWith(folder)))
      throw new Error(`test/runner/units.ts names ${folder}, where no test is.`);
  }
  const members = new Map<string, string[]>();
  for (const file of files) members.set(unitOf(file), [...(members.get(unitOf(file)) ?? []), file]);
  const units = [...members].map(([name, group]) =>
    group[0] === name ? fileUnit(root, name) : folderUnit(root, name, group),
  );
  const rank = ({ name }: TestUnit) =>
    (FIRST.findIndex((folder) => name.startsWith(folder)) + FIRST.length + 1) % (FIRST.length + 1);
  return units.sort((one, other) => rank(one) - rank(other));
}

/** The unit that a file belongs to: a folder, or itself. */
function unitOf(file: string): string {
  return [...PURE, ...SHARED].find((folder) => file.startsWith(folder)) ?? file;
}

function fileUnit(root: string, file: string): TestUnit {
  return { name: file, entry: join(root, file), files: [file], testMs: LONGER_MS[file] ?? TEST_MS_MAX };
}

let folders: string | undefined;

function folderUnit(root: string, name: string, files: readonly string[]): TestUnit {
  if (folders === undefined) {
    const made = mkdtempSync(join(tmpdir(), "flow-tests-"));
    process.once("exit", () => rmSync(made, { recursive: true, force: true }));
    folders = made;
  }
  const entry = join(folders, `${name.replaceAll("/", "-")}all.test.mjs`);
  const runner = pathToFileURL(join(import.meta.dirname, "run-files.js")).href;
  const call = [root, files].map((value) => JSON.stringify(value)).join(", ");
  writeFileSync(entry, `import { runFiles } from ${JSON.stringify(runner)};\nrunFiles(${call});\n`);
  return { name, entry, files, testMs: TEST_MS_MAX };
}
