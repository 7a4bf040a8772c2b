import { ownInputs } from "../../engine/decide/scope.ts";
import { taskScope } from "../../engine/decide/task-scope.ts";
import type { ProgramStep } from "../../engine/program/program.ts";
import { type JsonObject, setOwn } from "../../schema/words/json.ts";
import type { CommandContext } from "../task/command-context.ts";
import { freshState } from "../task/pipeline.ts";

/**
 * The inputs that a template of the step itself reads (its time-out, a cursor's claim): what arrived over the arc, and the
 * step's own `input` over it (language document, section 4.9). Throws what its templates throw.
 */
export async function stepInput({ place, options }: CommandContext, step: ProgramStep): Promise<JsonObject> {
  const { input: arrived, given } = place.command.context;
  const entries = ownInputs(step, given);
  if (entries.length === 0) return arrived;
  const scope = taskScope(place, freshState(), { input: () => arrived, attempt: 1 });
  const input = { ...arrived };
  for (const [key, template] of entries) {
    setOwn(input, key, await place.references.evaluate(() => template.render(scope, options)));
  }
  return input;
}
