import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { TestUnit } from "./run-unit.ts";

/** Folders of tests without processes, servers and files that they change: the files of each run in one process. */
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

/** Begin first, in this order: the longest, so that none of them is left alone at the end. */
const FIRST = ["simulator/", "faults/", "gui/", "deploy/"];

/** One at a time, beside units of other folders: these load a service until it gives way, and measure how soon it is back. */
const ALONE = "faults/";

/** The longest that a test may take. */
const TEST_MS_MAX = 60_000;
/** Files with a test that has more than a minute of work, and what it may take on a busy machine. */
const LONGER_MS: Readonly<Record<string, number>> = {
  // Ten thousand simulated runs are one test.
  "simulator/simulator.test.js": 600_000,
};

/** True when this unit is not to run beside another one of its kind. */
export function isAlone({ name }: TestUnit): boolean {
  return name.startsWith(ALONE);
}

/** True for a test file of the pure core. */
export function isPure(file: string): boolean {
  return PURE.some((folder) => file.startsWith(folder));
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
  const units = files.filter((file) => !isPure(file)).map((file) => fileUnit(root, file));
  for (const folder of PURE) {
    const members = files.filter((file) => file.startsWith(folder));
    if (members.length > 0) units.push(folderUnit(root, folder, members));
    else if (isAll) throw new Error(`test/runner/units.ts names ${folder}, where no test is.`);
  }
  const rank = ({ name }: TestUnit) =>
    (FIRST.findIndex((folder) => name.startsWith(folder)) + FIRST.length + 1) % (FIRST.length + 1);
  return units.sort((one, other) => rank(one) - rank(other));
}

function fileUnit(root: string, file: string): TestUnit {
  return { name: file, entry: join(root, file), files: [file], testMs: LONGER_MS[file] ?? TEST_MS_MAX };
}

function folderUnit(root: string, folder: string, files: readonly string[]): TestUnit {
  const place = mkdtempSync(join(tmpdir(), "flow-tests-"));
  process.once("exit", () => rmSync(place, { recursive: true, force: true }));
  const entry = join(place, "all.test.mjs");
  const lines = files.map((file) => `await import(${JSON.stringify(pathToFileURL(join(root, file)).href)});\n`);
  writeFileSync(entry, lines.join(""));
  return { name: folder, entry, files, testMs: TEST_MS_MAX };
}
