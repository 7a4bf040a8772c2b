import type { Dirent } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { TASK_FILES_MAX, type TaskFile } from "../../schema/words/outcome.ts";
import { FILE_BYTES_MAX, isFileName, NAME_CHARS_MAX, typeOfName } from "./file-names.ts";
import { openFileSafely, openSafely, type SafeFolder } from "./safe-folder.ts";

/** Most bytes of all files of one task run together. */
export const FILES_BYTES_MAX = 64 * 1024 * 1024;
/** Folders and things that are no files, of one task run: what is looked at at all. */
const OTHERS_MAX = 1_000;

/** What was found so far. */
interface Found {
  files: TaskFile[];
  bytes: number;
  others: number;
  log(line: string): void;
}

/**
 * The files that a task has left in its folder, by their names with `/` between folders, in the order of these. Links, pipes, sockets and devices are
 * no files: the log of the task says that they were left out. Throws `FlowError` INVALID_INPUT for a name that no file may have, and for more
 * than may be stored.
 */
export async function listFiles(root: string, log: (line: string) => void): Promise<TaskFile[]> {
  const found: Found = { files: [], bytes: 0, others: 0, log };
  await lookThrough([], await openSafely(root), root, found);
  return found.files.sort((one, other) => (one.name < other.name ? -1 : 1));
}

async function lookThrough(parents: string[], folder: SafeFolder, root: string, found: Found): Promise<void> {
  try {
    for await (const entry of folder.entries()) {
      const path = [...parents, entry.name];
      const name = path.join("/");
      if (!isFileName(entry.name) || name.length > NAME_CHARS_MAX) {
        throw refused(
          `the file ${JSON.stringify(name).slice(0, 300)} has a name that is not the same everywhere. Names have ${NAME_CHARS_MAX} characters at most, with their folders, and no control characters or backslashes`,
        );
      }
      if (entry.isFile()) await addFile(path, folder, root, found);
      else await addOther(entry, path, folder, root, found);
    }
  } finally {
    await folder.close();
  }
}

async function addFile(path: string[], folder: SafeFolder, root: string, found: Found): Promise<void> {
  const name = path.join("/");
  const file = await openFileSafely(folder, path.at(-1) ?? "").catch((error: unknown) => {
    throw refused(`the file "${name}" cannot be read: ${messageOf(error)}`);
  });
  // It is another thing by now.
  if (file === undefined) return;
  const size = await sizeOf(file);
  checkSize(name, size);
  found.bytes += size;
  if (found.files.length >= TASK_FILES_MAX)
    throw refused(`it left more than ${TASK_FILES_MAX} files. Pack them into one`);
  if (found.bytes > FILES_BYTES_MAX) {
    throw refused(
      `its files have more than ${FILES_BYTES_MAX.toLocaleString("en")} bytes together. Leave fewer, or write them to a store of your own`,
    );
  }
  const contentType = typeOfName(name) ?? "application/octet-stream";
  found.files.push({ name, contentType, content: () => contentOf(root, path) });
}

async function sizeOf(file: FileHandle): Promise<number> {
  try {
    return (await file.stat()).size;
  } finally {
    await file.close();
  }
}

async function addOther(entry: Dirent, path: string[], folder: SafeFolder, root: string, found: Found): Promise<void> {
  const name = path.join("/");
  found.others += 1;
  if (found.others > OTHERS_MAX) throw refused(`it left more than ${OTHERS_MAX} folders and links`);
  if (!entry.isDirectory()) {
    found.log(`${name} was not kept: it is a ${kindOf(entry)}, and only files are`);
    return;
  }
  const inner = await openSafely(folder.at(entry.name)).catch((error: unknown) => {
    throw refused(`the folder "${name}" cannot be read: ${messageOf(error)}`);
  });
  await lookThrough(path, inner, root, found);
}

function kindOf(entry: Dirent): string {
  if (entry.isSymbolicLink()) return "link";
  if (entry.isFIFO()) return "pipe";
  return entry.isSocket() ? "socket" : "device";
}

/** The bytes as they are now. Throws `FlowError` INVALID_INPUT for a file that is gone or has grown too large since it was listed. */
async function contentOf(root: string, path: readonly string[]): Promise<Uint8Array<ArrayBuffer>> {
  const name = path.join("/");
  let folder = await openSafely(root);
  try {
    for (const part of path.slice(0, -1)) {
      const inner = await openSafely(folder.at(part));
      await folder.close();
      folder = inner;
    }
    const file = await openFileSafely(folder, path.at(-1) ?? "");
    if (file === undefined) throw new Error("it is no file any more");
    try {
      const { size } = await file.stat();
      checkSize(name, size);
      const bytes = new Uint8Array(size);
      let length = 0;
      for (;;) {
        const { bytesRead } = await file.read(bytes, length, size - length, length);
        if (bytesRead === 0) return bytes.subarray(0, length);
        length += bytesRead;
      }
    } finally {
      await file.close();
    }
  } catch (error) {
    if (error instanceof FlowError) throw error;
    throw refused(`the file "${name}" cannot be read: ${messageOf(error)}`);
  } finally {
    await folder.close();
  }
}

function checkSize(name: string, bytes: number): void {
  if (bytes <= FILE_BYTES_MAX) return;
  throw refused(
    `the file "${name}" has ${bytes.toLocaleString("en")} bytes, and ${FILE_BYTES_MAX.toLocaleString("en")} are allowed. Pack it, or write it to a store of your own`,
  );
}

function refused(why: string): FlowError {
  return new FlowError("INVALID_INPUT", `The files of the task in FLOW_ARTIFACTS were not stored: ${why}`);
}
