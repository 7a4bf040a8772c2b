import { constants, type Dirent } from "node:fs";
import { chmod, type FileHandle, lstat, open, opendir, rm, rmdir, unlink } from "node:fs/promises";
import { join } from "node:path";

/**
 * A folder that code of a task may change at any moment. What stands in it is reached from the folder itself, not by a path from the top:
 * a folder that is exchanged for a link meanwhile leads nowhere else.
 */
export interface SafeFolder {
  /** Where the entry is found. Its last part may be a link: who opens it must not follow one. */
  at(name: string): string;
  entries(): AsyncIterable<Dirent>;
  close(): Promise<void>;
}

/** `O_PATH`, for which Node has no name: the folder itself, whatever its permissions are. */
const PATH_ONLY = 0o10000000;
const IS_LINUX = process.platform === "linux";

/** Opens a folder, and no link to one. Throws as `open` does. Elsewhere than on Linux, where no sandbox keeps code apart, by its path. */
export async function openSafely(path: string): Promise<SafeFolder> {
  return await opened(path);
}

async function opened(path: string | Buffer): Promise<SafeFolder & { place: string }> {
  if (typeof path === "string" && !IS_LINUX) {
    if (!(await lstat(path)).isDirectory()) throw new Error(`${path} is no folder`);
    return safeFolder(path, undefined);
  }
  const handle = await open(path, PATH_ONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  return safeFolder(`/proc/self/fd/${handle.fd}`, handle);
}

function safeFolder(place: string, handle: FileHandle | undefined): SafeFolder & { place: string } {
  return {
    place,
    at: (name) => join(place, name),
    async *entries() {
      yield* await opendir(place);
    },
    close: async () => await handle?.close(),
  };
}

/** Opens a file for reading, if it is one: no link is followed, and nothing waits for the other end of a pipe. Throws as `open` does. */
export async function openFileSafely(folder: SafeFolder, name: string): Promise<FileHandle | undefined> {
  const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants;
  const file = await open(folder.at(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if ((await file.stat()).isFile()) return file;
  await file.close();
  return undefined;
}

/** Removes a folder of a task with all that it holds, whatever its permissions are, and nothing that a link in it leads to. Never throws. */
export async function removeSafely(path: string): Promise<void> {
  try {
    if (IS_LINUX) {
      await emptySafely(path);
      await rmdir(path);
    } else await rm(path, { recursive: true, force: true });
  } catch {
    // It is gone already, or code is still writing into it: it goes with the folder of this process.
  }
}

/** Levels of folders that are gone through: code may make as many as it likes. */
const LEVELS_MAX = 1_000;

async function emptySafely(path: string | Buffer, level = 0): Promise<void> {
  const { place, close } = await opened(path);
  try {
    await chmod(place, 0o700);
    // Names are bytes, which need not be text.
    for await (const entry of await opendir(place, { encoding: "latin1" })) {
      const at = Buffer.concat([Buffer.from(`${place}/`), Buffer.from(entry.name, "latin1")]);
      if (!entry.isDirectory()) await unlink(at);
      else if (level < LEVELS_MAX) {
        await emptySafely(at, level + 1);
        await rmdir(at);
      }
    }
  } finally {
    await close();
  }
}
