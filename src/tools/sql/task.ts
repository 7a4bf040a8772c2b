import type { Json, JsonObject } from "../../schema/words/json.ts";
import { failed, type ToolResult } from "../../schema/words/outcome.ts";
import { configurationError } from "../contract/task-config.ts";
import type { StatementResult } from "./run.ts";

/** Keys that hold SQL, in the order in which they are looked for; each also with `_b64`. */
const SQL_KEYS = ["command", "commands", "query", "queries", "cmd", "cmds", "script", "sql"] as const;

/**
 * The SQL texts of a task (language document, section 8). Throws FlowError `INVALID_INPUT` if they are missing, or not text.
 */
export function readSqlTexts(kind: string, config: JsonObject): string[] {
  for (const key of SQL_KEYS) {
    for (const name of [key, `${key}_b64`]) {
      const value: Json = config[name] ?? null;
      if (value === null) continue;
      const texts = Array.isArray(value) ? value : [value];
      if (!texts.every((text) => typeof text === "string")) {
        throw configurationError(
          `The ${kind} task is not configured correctly: key "${name}" expects SQL text or a list of texts.`,
        );
      }
      return name === key ? texts : texts.map((text) => Buffer.from(text, "base64").toString("utf8"));
    }
  }
  return [];
}

/** The error of a task without a statement: no text, or nothing but comments. */
export function noSqlError(): Error {
  return configurationError('No SQL command provided: give it as "command" (text, or a list of texts) or "query".');
}

/** The result of statements that all succeeded: the last one's, every one's as the virtual `command_0`, `command_1`, …. */
export function sqlResult(results: readonly StatementResult[]): ToolResult {
  const views = results.map(statementView);
  const data: JsonObject = { status: "success", ...views.at(-1)!, statement_count: results.length };
  const virtual: JsonObject = {};
  for (const [index, view] of views.entries()) virtual[`command_${index}`] = { status: "success", ...view };
  return { status: "ok", data, virtual };
}

/** The fields of one statement's result as playbooks read them. */
export function statementView({ rows, rowCount, columns }: StatementResult): JsonObject {
  return { rows, row_count: rowCount, columns };
}

/** What a task says whose statement gave more than the row budget allows. `where` begins the sentence. */
export function tooManyRows(where: string): string {
  return `${where} gave more rows than a task may return. Read less at a time: add "limit", select fewer columns, or loop with a cursor.`;
}

/** The error of a task that began a transaction and did not end it. It was rolled back. */
export function leftOpenResult(): ToolResult {
  const message = 'The SQL opened a transaction and did not end it, so it was rolled back: add "commit" at its end.';
  return failed("db_error", "TRANSACTION_LEFT_OPEN", message);
}
