/**
 * A value that answers lookups itself, instead of by its own fields. Results are views (their `data` and `body` are
 * virtual, their payload may still be in a store), and so is `event.name`, which equals each of its spellings.
 *
 * The evaluator asks a view for fields, and takes its `plain()` value everywhere else: filters, iteration, comparison,
 * arithmetic, text.
 */
export abstract class View {
  /** The field, list item or virtual field `key`; undefined if it does not exist. */
  abstract get(key: string | number): unknown;

  /** The JSON value behind this view. Views inside it are allowed. */
  abstract plain(): unknown;

  /** True when this equals `other` (already plain). The default compares nothing and leaves it to `plain()`. */
  equals?(other: unknown): boolean;
}
