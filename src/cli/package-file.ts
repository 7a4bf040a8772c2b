import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { FlowError, messageOf } from "../schema/errors.ts";

/**
 * Reads a file of this package by its path from the package's root, wherever the package is installed. Throws `FlowError`
 * FILE_UNREADABLE.
 */
export async function readPackageFile(path: string): Promise<string> {
  const file = join(packageRoot(), path);
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    const hint = "The installation is incomplete; install the package again";
    throw new FlowError("FILE_UNREADABLE", `Cannot read ${file}: ${messageOf(cause)}. ${hint}`, { cause });
  }
}

/** The nearest folder above this code that has a package.json: bundled and compiled code lie at different depths. */
function packageRoot(): string {
  let folder = import.meta.dirname;
  while (!existsSync(join(folder, "package.json")) && dirname(folder) !== folder) folder = dirname(folder);
  return folder;
}
