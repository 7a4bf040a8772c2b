import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { FlowError, messageOf } from "../schema/errors.ts";

/**
 * Reads a file of this package by its path from the package's root, wherever the package is installed: compiled files
 * stand three folders below it (`dist/src/cli`). Throws `FlowError` FILE_UNREADABLE.
 */
export async function readPackageFile(path: string): Promise<string> {
  const file = fileURLToPath(new URL(`../../../${path}`, import.meta.url));
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    const hint = "The installation is incomplete; install the package again";
    throw new FlowError("FILE_UNREADABLE", `Cannot read ${file}: ${messageOf(cause)}. ${hint}`, { cause });
  }
}
