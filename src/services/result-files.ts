import { createHash, randomBytes } from "node:crypto";
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { FlowError, messageOf } from "../schema/errors.ts";

/** Payloads that are too large for the database, one file each, below one folder. Servers of one database share it. */
export interface ResultFiles {
  /** The name of a reference's file: of its hash, so that no text of a caller is part of a path. */
  nameOf(ref: string): string;
  /** Writes the payload beside its place, on the disk before this returns. Throws `FlowError` NOT_STORED, or what `body` throws. */
  write(body: AsyncIterable<Uint8Array>): Promise<WrittenFile>;
  /** The file's text as bytes, or undefined when it cannot be read. */
  read(name: string): Promise<Buffer | undefined>;
  /** Removes files; those that are gone already do not matter. */
  remove(names: readonly string[]): Promise<void>;
  /** Removes what a process that died has left half written. Gives how many. */
  removeRemains(): Promise<number>;
}

/** A payload that is written and has no name yet. */
export interface WrittenFile {
  bytes: number;
  sha256: string;
  /** Gives it its name, in place of what was there. */
  place(name: string): Promise<void>;
  /** Removes it, unless it was placed. */
  discard(): Promise<void>;
}

/** A file that is being written for longer than this belongs to a process that died. */
const REMAINS_MS = 3_600_000;
const TEMPORARY = ".part";

/** Files below `folder`, which is made with the first of them. */
export function createResultFiles(folder: string): ResultFiles {
  const pathOf = (name: string) => join(folder, name.slice(0, 2), `${name}.json`);
  return {
    nameOf: (ref) => createHash("sha256").update(ref).digest("hex"),
    write: (body) => writeFile(folder, pathOf, body),
    async read(name) {
      try {
        const file = await open(pathOf(name), "r");
        try {
          return await file.readFile();
        } finally {
          await file.close();
        }
      } catch {
        return undefined;
      }
    },
    async remove(names) {
      for (const name of names) await rm(pathOf(name), { force: true });
    },
    async removeRemains() {
      const files = await readdir(folder).catch(() => []);
      let removed = 0;
      for (const file of files.filter((name) => name.endsWith(TEMPORARY))) {
        const path = join(folder, file);
        const age = await stat(path).then(
          ({ mtimeMs }) => Date.now() - mtimeMs,
          () => 0,
        );
        if (age < REMAINS_MS) continue;
        await rm(path, { force: true });
        removed += 1;
      }
      return removed;
    },
  };
}

async function writeFile(
  folder: string,
  pathOf: (name: string) => string,
  body: AsyncIterable<Uint8Array>,
): Promise<WrittenFile> {
  const temporary = join(folder, `${randomBytes(12).toString("hex")}${TEMPORARY}`);
  // What cannot be removed now is removed with other remains.
  const discard = () => rm(temporary, { force: true }).catch(() => undefined);
  try {
    await stored(() => mkdir(folder, { recursive: true }));
    const file = await stored(() => open(temporary, "wx", 0o600));
    const hash = createHash("sha256");
    let bytes = 0;
    try {
      for await (const part of body) {
        hash.update(part);
        bytes += part.byteLength;
        await stored(() => file.write(part));
      }
      await stored(() => file.sync());
    } finally {
      await file.close();
    }
    const place = async (name: string) => {
      const path = pathOf(name);
      await stored(() => mkdir(dirname(path), { recursive: true }));
      await stored(() => rename(temporary, path));
      await stored(() => syncFolder(dirname(path)));
    };
    return { bytes, sha256: hash.digest("hex"), place, discard };
  } catch (error) {
    await discard();
    throw error;
  }
}

/** A name is on the disk when its folder is. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

async function stored<T>(step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (cause) {
    const hint = "Make room in the folder of results (FLOW_HOME), or see that it can be written to";
    throw new FlowError("NOT_STORED", `The result could not be written to a file: ${messageOf(cause)}. ${hint}`, {
      cause,
    });
  }
}
