/** Fields that may be undefined as optional ones, the others as they are. */
type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/**
 * The fields that are not undefined, for `{ id, ...defined({ name, limit }) }`: with `exactOptionalPropertyTypes` a field has
 * a value or is absent. It takes 0.1 µs more than `...(name !== undefined && { name })`, which stays in code that runs for each
 * command or event.
 */
export function defined<T extends object>(fields: T): Defined<T> {
  const given: Partial<T> = {};
  for (const key in fields) if (fields[key] !== undefined) given[key] = fields[key];
  return given as unknown as Defined<T>;
}
