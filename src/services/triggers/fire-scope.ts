import { compileTemplate } from "../../language/template/template.ts";
import { objectScope } from "../../language/views/scope.ts";
import type { TriggerRow } from "../../repositories/triggers/triggers.ts";
import { messageOf } from "../../schema/words/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../schema/words/json.ts";

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
    const render = (source: Json) => compileTemplate(source).render(given, { now: () => scope.firedAt });
    const { input, inputFrom } = row.definition;
    const payload = inputFrom === undefined ? {} : render(inputFrom);
    const base = isJsonObject(payload) ? payload : { payload };
    return { input: JSON.stringify({ ...base, ...(render(input) as JsonObject) }) };
  } catch (error) {
    return { reason: `Its input could not be made: ${messageOf(error)}` };
  }
}
