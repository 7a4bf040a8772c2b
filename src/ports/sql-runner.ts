import type { Json, JsonObject } from "../schema/words/json.ts";
import type { StoredCredential } from "./credentials.ts";

/** SQL to be run for an operator. */
export interface SqlRequest {
  credential: StoredCredential;
  /** One or more statements; they run one after another on one connection, each its own transaction unless they say `begin`. */
  query: string;
  /** Values of $1, $2, …. */
  parameters: readonly Json[];
  /** Longest that each statement may take, in milliseconds. */
  timeoutMs: number;
  /** Most rows over all statements. */
  rowsMax: number;
  /** May it run on the service's own database? */
  ownAllowed: boolean;
  signal: AbortSignal;
}

/** How it ended. */
export type SqlAnswer =
  /** Of the last statement. `rowCount`: rows given or, by a statement that gives none, changed. */
  | { status: "ok"; columns: string[]; rows: JsonObject[]; rowCount: number; command: string }
  /** The database's own word; `sqlstate` is missing where it could not be reached. */
  | { status: "failed"; message: string; sqlstate?: string }
  /** It is the service's own database, and nothing was run. */
  | { status: "own" }
  /** There were more rows than may be given; the statement was stopped. */
  | { status: "too much" };

/** Runs SQL with a credential of type `sqldb`. */
export interface SqlRunner {
  /** Throws `FlowError` INVALID_INPUT for SQL or data of a credential that cannot be used, and the signal's reason. */
  run(request: SqlRequest): Promise<SqlAnswer>;
}
