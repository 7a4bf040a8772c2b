import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { packagePath } from "./package-file.ts";

/** The texts of the program's Python files by their names, where `bin/bundle.js` has put them in. */
declare const BUNDLED_PYTHON: Readonly<Record<string, string>> | undefined;

/**
 * The text of a Python file of the program, by its path from the checkout. The bundle holds it, so that a service which runs while
 * a new version is installed starts Python programs of its own version.
 */
export function readPythonFile(path: string): string {
  if (typeof BUNDLED_PYTHON !== "undefined") return BUNDLED_PYTHON[basename(path)] ?? "";
  return readFileSync(packagePath(path), "utf8");
}
