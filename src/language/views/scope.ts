import { own } from "../../schema/words/json.ts";

/**
 * The names that a template may read. Looked up one by one, never copied: a scope over a thousand results costs nothing
 * until a template names one of them.
 */
export interface Scope {
  /** The value of `name`, or undefined when nothing has that name. */
  lookup(name: string): unknown;
  /** Every name that can be looked up, for hints ("did you mean …") and for code that wants them all. */
  names(): Iterable<string>;
}

/** A scope over the own fields of `record`, which is read at each lookup and never copied. */
export function objectScope(record: object): Scope {
  return { lookup: (name) => own(record, name), names: () => Object.keys(record) };
}
