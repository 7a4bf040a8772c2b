import * as v from "valibot";
import { isJsonObject } from "../words/json.ts";

/**
 * The building blocks of the document's schema. Maps are open: an unknown key is a warning, never an error. A key with an empty
 * value counts as absent. If a value has several forms, `byShape` picks the one that the value resembles, so that a message is
 * about that form.
 */

/** What the document's schema is made of. */
export type Schema = v.GenericSchema<unknown, unknown>;

/** A key that may be absent or empty. */
export function key<S extends Schema>(schema: S, description: string) {
  return v.exactOptional(v.pipe(v.nullable(schema), v.description(description)));
}

/** A key that must be there. */
export function required<S extends Schema>(schema: S, description: string) {
  return v.pipe(schema, v.description(description));
}

/** A map with these keys, and any others. */
export function map<const E extends v.ObjectEntries>(entries: E) {
  return refusingLists(v.object(entries));
}

/** A map whose values are all of one schema. */
export function mapOf<S extends Schema>(value: S) {
  return refusingLists(v.record(v.string(), value));
}

/** The schema, refusing lists: valibot takes them for maps, as JavaScript does. */
function refusingLists<S extends Schema>(schema: S): S {
  const run: S["~run"] = (dataset, config) => {
    const { value } = dataset;
    if (!Array.isArray(value)) return schema["~run"](dataset, config);
    const { type, expects: expected } = schema;
    const issue = {
      kind: "schema",
      type,
      input: value,
      expected,
      received: "Array",
      message: "a list is no map",
    } as const;
    return { typed: false, value, issues: [issue] };
  };
  return { ...schema, "~run": run };
}

/** One of several forms, chosen by looking at the value. Without a value it is the union of them, for JSON Schema. */
export function byShape(union: Schema, pick: (value: unknown) => Schema) {
  return v.lazy((value) => (value === undefined ? union : pick(value)));
}

/** Any text. */
export const text = v.string();
/** true or false. */
export const flag = v.boolean();
/** Any value. */
export const anything = v.unknown();
/** A map of anything. */
export const anyMap = mapOf(v.unknown());
/** A number, or a template (or text) that gives one. */
export const numberOrTemplate = v.union([v.number(), v.string()]);
/** What may stand where a condition is tested. */
export const condition = v.union([v.boolean(), v.string(), v.number()]);
/** Values by the name they are assigned to. */
export const assignments = mapOf(v.unknown());

/** Description of a condition. */
export const WHEN = "Condition: a template, or an expression without braces.";
/** Description of inputs. */
export const INPUT = "Inputs by name, with templates.";
/** Description of a duration. */
export const SECONDS = "Seconds, as a number or a template.";

/** True for a map with this key. */
export function hasKey(value: unknown, name: string): boolean {
  return isJsonObject(value) && Object.hasOwn(value, name);
}
