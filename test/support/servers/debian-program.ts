import { access, mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { withFolderLock } from "../../../src/platform/system/folder-lock.ts";
import { runProgram } from "../../../src/platform/system/run-program.ts";

/** A program of Debian that tests run. */
export interface DebianProgram {
  /** Its name on PATH, or its place below the root of its package. */
  name: string;
  /** Where it may be: folders below the root of its package, or of this machine. */
  folders: readonly string[];
  /** Its package, and those of libraries that not every machine has. */
  packages: readonly string[];
}

/**
 * The program on PATH or in its place on this machine, else Debian's, unpacked into a cache folder once for all test processes.
 * Needs no root. Gives its path, and the folder of its libraries where it was unpacked. Fails, and says so, where it cannot be had.
 */
export async function findDebianProgram(program: DebianProgram): Promise<{ path: string; root: string }> {
  const { name, folders, packages } = program;
  const own = [...(process.env["PATH"] ?? "").split(delimiter), ...folders.map((folder) => join("/", folder))];
  for (const folder of own) if (await isThere(join(folder, name))) return { path: join(folder, name), root: "/" };
  const cache = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "flow-test");
  await mkdir(cache, { recursive: true });
  const root = join(cache, `debian-${packages[0]}`);
  await withFolderLock(cache, async () => {
    if (!(await isThere(root))) await unpack(program, cache, root);
  });
  for (const folder of folders)
    if (await isThere(join(root, folder, name))) return { path: join(root, folder, name), root };
  throw new Error(`${missing(program)}\nThe package has none in ${folders.join(", ")}`);
}

async function unpack(program: DebianProgram, cache: string, place: string): Promise<void> {
  const draft = await mkdtemp(join(cache, "draft-"));
  try {
    const downloaded = await runProgram("apt-get", ["download", ...program.packages], { folder: draft });
    const debs = (await readdir(draft)).filter((name) => name.endsWith(".deb"));
    if (debs.length < program.packages.length) throw new Error(`${missing(program)}\n${downloaded.output}`);
    for (const deb of debs) {
      const extracted = await runProgram("dpkg", ["-x", deb, "root"], { folder: draft });
      if (extracted.code !== 0) throw new Error(`${missing(program)}\n${extracted.output}`);
    }
    await rename(join(draft, "root"), place);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

function missing({ name, packages }: DebianProgram): string {
  const why = `These tests need ${name}. There is none on this machine, and Debian's package could not be unpacked.`;
  return `${why} Install ${packages[0]}, or run 'apt-get update' where apt can reach its mirrors:`;
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
