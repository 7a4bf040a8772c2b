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
