import { compileTemplate, type Template } from "../../language/template/template.ts";
import { objectScope } from "../../language/views/scope.ts";
import type { TriggerRow } from "../../repositories/triggers/triggers.ts";
import { messageOf } from "../../schema/words/errors.ts";
import { isJsonObject, type JsonObject } from "../../schema/words/json.ts";

/** What a fire is about, beside its trigger. */
export interface FireScope {
  /** Its time, or when what it is for came; milliseconds since 1970. */
  dueAt: number;
  firedAt: number;
  /** Further fields of `trigger`. */
  about?: JsonObject;
  /** Further names: the `body` of a webhook. */
  names?: JsonObject;
}

/** The names that templates of a trigger read (control, rule 39). */
export function fireScope(
  { triggerId, name, kind }: Pick<TriggerRow, "triggerId" | "name" | "kind">,
  { dueAt, firedAt, about = {}, names = {} }: FireScope,
  env: JsonObject,
): JsonObject {
  const trigger = {
    id: triggerId,
    name,
    kind,
    scheduled_at: new Date(dueAt).toISOString(),
    fired_at: new Date(firedAt).toISOString(),
    ...about,
  };
  return { ...names, env, trigger };
}

/** The inputs of an execution as JSON, or why they could not be made. */
export function renderInput(
  row: TriggerRow,
  scope: FireScope,
  env: JsonObject,
): { input: string } | { reason: string } {
  try {
    const given = objectScope(fireScope(row, scope, env));
    const { input, inputFrom } = templatesOf(row.definition);
    const options = { now: () => scope.firedAt };
    const payload = inputFrom === undefined ? {} : inputFrom.render(given, options);
    const base = isJsonObject(payload) ? payload : { payload };
    return { input: JSON.stringify({ ...base, ...(input.render(given, options) as JsonObject) }) };
  } catch (error) {
    return { reason: `Its input could not be made: ${messageOf(error)}` };
  }
}

type Definition = Pick<TriggerRow["definition"], "input" | "inputFrom">;
const compiled = new WeakMap<Definition, { input: Template; inputFrom: Template | undefined }>();

/** Compiled once for as long as the row is in memory: a webhook's takes some hundred deliveries in that time. */
function templatesOf(definition: Definition) {
  const before = compiled.get(definition);
  if (before !== undefined) return before;
  const { input, inputFrom } = definition;
  const made = {
    input: compileTemplate(input),
    inputFrom: inputFrom === undefined ? undefined : compileTemplate(inputFrom),
  };
  compiled.set(definition, made);
  return made;
}
