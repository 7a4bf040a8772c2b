import type { JsonObject } from "../../schema/words/json.ts";
import type { Assignment } from "../../schema/words/playbook.ts";
import { isMap, type Place } from "./source/place.ts";
import { noteTemplate, type Reading } from "./source/reading.ts";

/**
 * Assignments of a map, in its order (language document, section 5.6). `ctx.x`, `step.x` and `vars.x` write a variable of
 * the execution, `iter.x` one of the iteration; `bare` is the scope of a name without any of these. Dots after the scope
 * are part of the name.
 */
export function readAssignments(reading: Reading, place: Place | undefined, bare: Assignment["scope"]): Assignment[] {
  const assignments: Assignment[] = [];
  for (const [key, value] of place?.fields ?? []) {
    noteTemplate(reading, value);
    const [, prefix, name] = /^(ctx|step|vars|iter)\.(.+)$/s.exec(key) ?? [];
    const scope = prefix === undefined ? bare : prefix === "iter" ? "iter" : "ctx";
    assignments.push({ scope, name: name ?? key, value: value.value });
  }
  return assignments;
}

/** Several maps of assignments as one; of two with the same target the later map's value stands, in the earlier's place. */
export function mergeAssignments(...lists: readonly Assignment[][]): Assignment[] {
  const byTarget = new Map<string, Assignment>();
  for (const assignment of lists.flat()) byTarget.set(`${assignment.scope} ${assignment.name}`, assignment);
  return [...byTarget.values()];
}

/** Maps of inputs as one; later maps win (language document, section 3: `args` and `input`, `input` wins). */
export function readInputs(reading: Reading, ...places: readonly (Place | undefined)[]): JsonObject {
  const inputs: JsonObject = {};
  for (const place of places) {
    if (!isMap(place)) continue;
    noteTemplate(reading, place);
    for (const [key, value] of place.fields) inputs[key] = value.value;
  }
  return inputs;
}
