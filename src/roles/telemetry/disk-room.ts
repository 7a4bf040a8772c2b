import { statfs } from "node:fs/promises";

/** The room of the disk that a folder is on; undefined where there is no such folder. */
export async function diskRoom(
  folder: string,
): Promise<{ folder: string; freeBytes: number; totalBytes: number } | undefined> {
  try {
    const { bavail, blocks, bsize } = await statfs(folder);
    return { folder, freeBytes: bavail * bsize, totalBytes: blocks * bsize };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
