import * as v from "valibot";
import { JsonValue, storableText } from "../words/wire.ts";

/* Body and answer of `POST /api/sqldb/execute` (interface specification, Credentials). */

/** Body of `POST /api/sqldb/execute`. */
export const SqlExecuteBody = v.object({
  credential_name: v.pipe(
    storableText(255),
    v.nonEmpty(),
    v.description("Name, or id, of a credential of type sqldb."),
  ),
  query: v.pipe(storableText(1_000_000), v.nonEmpty(), v.description("One statement, or several that run in turn.")),
  parameters: v.exactOptional(v.pipe(v.array(JsonValue), v.maxLength(10_000), v.description("Values of $1, $2, …."))),
});

/** Its answer: that of the last statement. */
export const SqlExecuteAnswer = v.object({
  status: v.literal("ok"),
  columns: v.array(v.string()),
  rows: v.array(v.record(v.string(), v.unknown())),
  row_count: v.pipe(v.number(), v.description("Rows given or, by a statement that gives none, changed.")),
  command: v.pipe(v.string(), v.description("SELECT, INSERT, CREATE TABLE, ….")),
});
export type SqlExecuteAnswer = v.InferOutput<typeof SqlExecuteAnswer>;
