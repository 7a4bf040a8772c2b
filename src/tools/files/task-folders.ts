import { type Dir, mkdtempSync, opendirSync, rmSync } from "node:fs";
import { rename } from "node:fs/promises";
import { join } from "node:path";
import { ownFolder } from "../../platform/system/own-folder.ts";
import type { TaskFiles } from "../../schema/words/outcome.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { listFiles } from "./list-files.ts";
import { openSafely, removeSafely } from "./safe-folder.ts";

/** Variable with the folder whose files are kept with the execution. */
export const FILES_VARIABLE = "FLOW_ARTIFACTS";

/** The folders of this process in which code leaves its files, each for one program. */
export interface TaskFolders {
  /** A new, empty one, which only the user of this process may enter. */
  make(): string;
  /** Where a program finds it. */
  inside(folder: string): string;
  /**
   * What a task has left in the folder, which is empty then and may be used again; undefined: nothing. `isOver`: no program has it any more, and it
   * is gone after this.
   */
  take(folder: string, log: (line: string) => void, isOver: boolean): Promise<TaskFiles | undefined>;
  /** Takes the folder away with what is in it. Never throws. */
  remove(folder: string): Promise<void>;
}

/** Makes nothing before a folder is asked for. What is left when the process leaves goes with it. */
export function createTaskFolders(sandbox: Sandbox): TaskFolders {
  let root = sandbox.files?.root;
  const rootFolder = () => {
    if (root === undefined) {
      const folder = ownFolder("files");
      process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
      root = folder;
    }
    return root;
  };
  // Tools that share a sandbox share its root.
  const make = () => mkdtempSync(join(rootFolder(), "task-"));
  return {
    make,
    inside: (folder) => sandbox.files?.path ?? folder,
    async take(folder, log, isOver) {
      if (isEmpty(folder)) {
        if (isOver) await removeSafely(folder);
        return undefined;
      }
      if (isOver) return taskFiles(folder, log);
      const taken = make();
      await moveAll(folder, taken);
      return taskFiles(taken, log);
    },
    remove: removeSafely,
  };
}

/** Most tasks leave nothing, and this is all that they pay. */
function isEmpty(folder: string): boolean {
  let entries: Dir;
  try {
    entries = opendirSync(folder, { bufferSize: 1 });
  } catch {
    // Its program was ended meanwhile, or has taken all rights away.
    return true;
  }
  try {
    return entries.readSync() === null;
  } finally {
    entries.closeSync();
  }
}

/** Out of reach of the next task. What its names are does not matter yet. */
async function moveAll(from: string, to: string): Promise<void> {
  const folder = await openSafely(from);
  try {
    for await (const { name } of folder.entries()) await rename(folder.at(name), join(to, name));
  } finally {
    await folder.close();
  }
}

function taskFiles(folder: string, log: (line: string) => void): TaskFiles {
  return { list: () => listFiles(folder, log), remove: () => removeSafely(folder) };
}
