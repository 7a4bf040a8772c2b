import { realpathSync, statSync } from "node:fs";
import { dirname, isAbsolute, join, relative, sep } from "node:path";
import { packagePath } from "../../platform/system/package-file.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { SCRATCH_FOLDER } from "./sandbox.ts";

/** One mount of a shared folder. They are made in order: a later one covers what an earlier one shows. */
export interface SharedMount {
  /** `read` and `write` show what is there; `hide` shows an empty folder or file instead. */
  access: "read" | "write" | "hide";
  /** The same outside and in the sandbox, without links. */
  path: string;
  isFolder: boolean;
}

/** A folder of the machine that programs in a sandbox start in, and read and write. */
export interface SharedFolder {
  path: string;
  /** The folder itself first. */
  mounts: readonly SharedMount[];
}

/**
 * The folder with what must not be reached through it: `hidden` (absolute paths; absent ones are left out) is not shown, and the
 * files of this program are only read. Code cannot move the folders above them away to reach what they hold: those are mounts of
 * their own.
 */
export function sharedFolder(folder: string, hidden: readonly string[]): SharedFolder {
  const path = realpathSync(folder);
  const inside = existing(hidden).filter((each) => isWithin(path, each));
  // What lies in a hidden folder is hidden with it: in the empty one there is nothing to cover.
  const covered = inside.filter((each) => !inside.some((other) => other !== each && isWithin(other, each)));
  const read = programFiles().filter((each) => isWithin(path, each) && each !== path);
  const pinned = [...new Set([...covered, ...read].flatMap((each) => foldersBetween(path, each)))].sort();
  const mounts = [
    ...[path, ...pinned].map((each) => mount("write", each)),
    ...read.map((each) => mount("read", each)),
    ...covered.map((each) => mount("hide", each)),
  ];
  return { path, mounts };
}

/** Throws FlowError `INVALID_SETTING` for a folder that code in a sandbox cannot be given. */
export function assertShareable(folder: string, hidden: readonly string[]): void {
  const why = unshareable(folder, hidden);
  if (why !== undefined) throw new FlowError("INVALID_SETTING", `FLOW_TASK_FOLDER=${folder} cannot be used: ${why}`);
}

/** Why code in a sandbox cannot be given the folder; undefined: it can. */
export function unshareable(folder: string, hidden: readonly string[]): string | undefined {
  const path = existing([folder])[0];
  if (path === undefined || !statSync(path).isDirectory()) return "it is not a folder";
  const above = [SCRATCH_FOLDER, "/usr", "/etc", "/dev", "/proc", "/sys", "/run"].find((each) => isWithin(path, each));
  if (above !== undefined) return `it holds ${above}, which is the machine's`;
  const secret = existing(hidden).find((each) => isWithin(each, path));
  if (secret !== undefined) return `it lies in ${secret}, which code of tasks must not see`;
  const program = programFiles().find((each) => isWithin(each, path));
  if (program !== undefined) return `it lies in ${program}, which is a part of flow`;
  return undefined;
}

/** What this program is loaded from: who could write to it would be this program at its next start. */
function programFiles(): string[] {
  const root = packagePath("");
  const [above, ...rest] = root.split(`${sep}node_modules${sep}`);
  // Installed, its packages lie beside it. In a checkout the root may well be the folder that people work in.
  const own =
    rest.length > 0
      ? [join(above!, "node_modules")]
      : ["dist", "node_modules", "package.json", "bin"].map((name) => join(root, name));
  return existing([...own, process.execPath]);
}

/** The paths of what is there, without links. */
function existing(paths: readonly string[]): string[] {
  return paths.flatMap((path) => {
    try {
      return [realpathSync(path)];
    } catch {
      return [];
    }
  });
}

function mount(access: SharedMount["access"], path: string): SharedMount {
  return { access, path, isFolder: statSync(path).isDirectory() };
}

/** The folders between the two, without them. */
function foldersBetween(top: string, path: string): string[] {
  const folders: string[] = [];
  for (let each = dirname(path); each !== top && isWithin(top, each); each = dirname(each)) folders.push(each);
  return folders;
}

/** Whether the path is the folder or lies in it. */
export function isWithin(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}
