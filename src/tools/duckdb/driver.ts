import { createRequire } from "node:module";
import { FlowError, messageOf } from "../../schema/words/errors.ts";

/** The driver's module. */
export type Duckdb = typeof import("@duckdb/node-api");

/**
 * Loads the driver, which is an optional dependency: 70 MB of native code that most installations never use. Throws
 * FlowError `NOT_FOUND` that says what to install.
 */
export async function loadDuckdb(load: () => Promise<Duckdb> = () => import("@duckdb/node-api")): Promise<Duckdb> {
  try {
    return await load();
  } catch (error) {
    const reason = messageOf(error).split("\n")[0];
    throw new FlowError(
      "NOT_FOUND",
      `DuckDB is not installed here (${reason}). Run "npm install @duckdb/node-api" where flow is installed as a package; ` +
        "how the container image gets it stands in docs/tools.md; the single-file executable cannot load it.",
      { cause: error },
    );
  }
}

/** Whether the driver is there to be loaded. Loads nothing. */
export function isDuckdbInstalled(): boolean {
  try {
    createRequire(import.meta.url).resolve("@duckdb/node-api");
    return true;
  } catch {
    return false;
  }
}
