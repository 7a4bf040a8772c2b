import * as v from "valibot";
import { IdText, JsonObjectValue, NextCursor, RunVersion, Timestamp } from "../words/wire.ts";
import { EXECUTION_STATES } from "./execution-filter.ts";

/** An execution in a lineage. */
export const RelativeAnswer = v.object({
  execution_id: IdText,
  path: v.string(),
  version: RunVersion,
  status: v.picklist(EXECUTION_STATES),
  by: v.pipe(
    v.picklist(["rerun", "parent", "trigger", "hook"]),
    v.description("How it came from `of`; of an ancestor how the next one came from it."),
  ),
  of: v.pipe(v.nullable(IdText), v.description("The execution that it came from itself; null at the top.")),
  trigger: v.exactOptional(
    v.pipe(v.string(), v.description("By a trigger: its name; of an ancestor that of the next one.")),
  ),
  changed: v.exactOptional(v.pipe(JsonObjectValue, v.description("Of a rerun: where from, and what was replaced."))),
  started_at: v.nullable(Timestamp),
  deleted_at: v.exactOptional(v.pipe(Timestamp, v.description("It is deleted: this is what is left of it."))),
});
export type RelativeAnswer = v.InferOutput<typeof RelativeAnswer>;

/** Answer of `GET /api/executions/{execution_id}/lineage`. */
export const LineageAnswer = v.object({
  changed: v.exactOptional(
    v.pipe(JsonObjectValue, v.description("Where the execution itself is a rerun: where from, and what was replaced.")),
  ),
  ancestors: v.pipe(v.array(RelativeAnswer), v.description("On the first page: the nearest first, 1,000 at most.")),
  descendants: v.pipe(v.array(RelativeAnswer), v.description("Each before what came from it, siblings by age.")),
  next_cursor: NextCursor,
});
export type LineageAnswer = v.InferOutput<typeof LineageAnswer>;
