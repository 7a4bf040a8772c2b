import { own } from "../schema/json.ts";

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

/** One scope over several: the first layer in which a name is not undefined gives its value. */
export function layeredScope(...layers: readonly Scope[]): Scope {
  return {
    lookup(name) {
      for (const layer of layers) {
        const value = layer.lookup(name);
        if (value !== undefined) return value;
      }
      return undefined;
    },
    names() {
      const names = new Set<string>();
      for (const layer of layers) for (const name of layer.names()) names.add(name);
      return names;
    },
  };
}
