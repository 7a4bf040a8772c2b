import { messageOf } from "../../schema/words/errors.ts";
import { failed, type TaskErrorKind, type ToolResult } from "../../schema/words/outcome.ts";

/** Where in a task an error came up: it begins the message. */
export interface DuckdbPlace {
  /** "The SQL statement", "SQL statement 2 of 3". */
  what: string;
  /** The database was made for this task: that no table is there may have this reason. */
  isNew: boolean;
}

/** The result of a statement that failed, from DuckDB's `<Type> Error: <what>`; the code is the type, `PARSER_ERROR`. */
export function duckdbFailure(thrown: unknown, place: DuckdbPlace): ToolResult {
  const text = messageOf(thrown)
    .replace(/^Failed to (extract statements|prepare): /, "")
    .trim();
  const type = /^([A-Za-z ]+?) Error: /.exec(text)?.[1] ?? "DuckDB";
  const code = `${type.toUpperCase().replaceAll(" ", "_")}_ERROR`;
  // What follows an empty line is the excerpt with its caret, or a page of general advice.
  const paragraph = text.split(/\n\s*\n/)[0]!.replace(/\s+/g, " ");
  const reason = /[.!?]$/.test(paragraph) ? paragraph : `${paragraph}.`;
  const [kind, hint] = judge(type, text, place);
  const retryable = kind === "db_connection" || kind === "db_deadlock";
  return failed(kind, code, `${place.what} failed: ${reason}${hint}`, { retryable });
}

function judge(type: string, text: string, place: DuckdbPlace): [TaskErrorKind, string] {
  if (type === "Constraint") return ["db_constraint", ""];
  if (type === "TransactionContext" && /conflict/i.test(text)) return ["db_deadlock", ""];
  if (type === "IO" && text.includes("Could not set lock")) {
    return ["db_connection", " Another process has the file open; DuckDB lets one at a time write it."];
  }
  if (type === "Out of Memory") return ["db_error", " FLOW_DUCKDB_MEMORY is what a database may use."];
  if (type === "Permission") {
    return ["configuration", " FLOW_DUCKDB_FILES names the folders that DuckDB may use on this machine."];
  }
  if (type === "Catalog" && place.isNew && /does not exist/.test(text)) {
    return ["db_error", ` ${IN_MEMORY}`];
  }
  return ["db_error", ""];
}

const IN_MEMORY =
  "The database was made for this task: one in memory stays on its worker, as long as it is used. " +
  'For tables that last give a file as "database".';
