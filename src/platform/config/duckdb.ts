import { FlowError } from "../../schema/words/errors.ts";
import { setting } from "../setting.ts";

/** Settings of `duckdb` tasks. */
export const DUCKDB_SETTINGS = {
  duckdbFiles: setting({
    name: "FLOW_DUCKDB_FILES",
    meaning: "Folders whose files duckdb tasks may read and write, comma-separated, or 'all' or 'none'",
    default: "all; of a worker with a server elsewhere, or a database of your own: none, so databases in memory only",
    parse: (text) => (text === undefined || text === "all" ? "all" : folders(text === "none" ? "" : text)),
  }),
  duckdbMemory: setting({
    name: "FLOW_DUCKDB_MEMORY",
    meaning: "Memory that one DuckDB database may use, as 512MB or 4GB",
    default: "1GB",
    parse: (text) => memory("FLOW_DUCKDB_MEMORY", text ?? "1GB"),
  }),
} as const;

function folders(text: string): readonly string[] {
  const parts = text.split(",").map((part) => part.trim());
  return Object.freeze(parts.filter((part) => part !== ""));
}

function memory(name: string, text: string): string {
  if (/^[1-9]\d*(\.\d+)?\s*[KMGT](i?B)$/i.test(text)) return text;
  throw new FlowError("INVALID_SETTING", `${name} must be a size such as 512MB or 4GB, got '${text}'`);
}
