import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { FlowError, messageOf } from "../../schema/words/errors.ts";

/**
 * Reads a file of this package by its path from the package's root.
 *
 * Throws `FlowError` FILE_UNREADABLE.
 */
export async function readPackageFile(path: string): Promise<string> {
  const file = packagePath(path);
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    const hint = "The installation is incomplete; install the package again";
    throw new FlowError("FILE_UNREADABLE", `Cannot read ${file}: ${messageOf(cause)}. ${hint}`, { cause });
  }
}

/** The program's version. Throws as {@link readPackageFile}. */
export async function packageVersion(): Promise<string> {
  // Written by us.
  const { version } = JSON.parse(await readPackageFile("package.json")) as { version: string };
  return version;
}

/**
 * Where something of this package lies. The root is the nearest folder above the running code that has a `package.json`:
 * compiled files and bundled ones lie at different depths below it.
 */
export function packagePath(path: string): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, "package.json"))) {
    const above = dirname(folder);
    if (above === folder) break;
    folder = above;
  }
  return join(folder, path);
}
