import * as v from "valibot";
import { IdInput, IdText, JsonObjectValue } from "../words/wire.ts";

/* Query and answer of the route that shows what the templates of a command came to. */

const count = v.pipe(v.number(), v.integer(), v.minValue(0));

function countText(description: string) {
  return v.exactOptional(
    v.pipe(
      v.string(),
      v.check((text) => /^\d{1,15}$/.test(text), "must be a whole number"),
      v.description(description),
    ),
  );
}

/** Query of `GET /api/executions/{execution_id}/rendered`. */
export const RenderedQuery = v.object({
  command_id: v.pipe(IdInput, v.description("A command of the execution, as its events name it.")),
  iteration: countText("Of a loop: which one of the command's iterations, the first by default."),
  attempt: countText("Which claim of the command, the newest by default."),
});

/** One task of a command. */
export const RenderedTask = v.object({
  task: v.string(),
  kind: v.pipe(v.string(), v.description("Of the tool that is called, for `workbook` too.")),
  template: v.pipe(JsonObjectValue, v.description("Its keys as they are written, `input` and `auth` among them.")),
  rendered: v.pipe(
    v.nullable(JsonObjectValue),
    v.description(
      "The same keys rendered; null where that is too long. A text that could not be rendered stands as written.",
    ),
  ),
  unknown: v.pipe(
    v.array(v.object({ path: v.string(), waits_for: v.array(v.string()) })),
    v.description("Places that read what is not known here: a stored result, a task still to come."),
  ),
  secret: v.pipe(v.array(v.string()), v.description("Places that are `[secret]`.")),
  errors: v.pipe(
    v.array(v.object({ path: v.string(), message: v.string() })),
    v.description("Places whose template fails."),
  ),
});
export type RenderedTask = v.InferOutput<typeof RenderedTask>;

/** Answer of `GET /api/executions/{execution_id}/rendered`. */
export const RenderedAnswer = v.object({
  command_id: IdText,
  step: v.string(),
  attempt: v.pipe(count, v.description("0 while it is unclaimed.")),
  iteration: v.exactOptional(count),
  tasks: v.pipe(v.array(RenderedTask), v.description("In their order; none of a cursor's claim.")),
});
export type RenderedAnswer = v.InferOutput<typeof RenderedAnswer>;
