import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";

/**
 * This PATH with the folder of the interpreter itself in front, where `python3` is the shim of a version manager: a shim is a shell
 * script, which takes longer to start than Python does, and the tests start hundreds. Unchanged where there is no Python.
 */
export function withRealPython(path: string): string {
  const found = path.split(delimiter).find((folder) => existsSync(join(folder, "python3")));
  if (found === undefined) return path;
  const { stdout } = spawnSync("python3", ["-c", "import sys; print(sys.executable)"], { encoding: "utf8" });
  const real = dirname((stdout ?? "").trim());
  return real === "." || real === found ? path : `${real}${delimiter}${path}`;
}
