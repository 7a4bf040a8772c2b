import { isJsonObject, type Json, type JsonObject, own, setOwn } from "../../schema/words/json.ts";

/** Maps a text or a number to its replacement. */
type Leaf = (leaf: string | number) => Json;

/**
 * The value with each text and number in it replaced by the result of `leaf`. Keys of objects are unchanged, unless `key` is
 * given. Unchanged parts are not copied: a value in which nothing changes is returned itself.
 */
export function mapJson(value: Json, leaf: Leaf, key?: Leaf): Json {
  if (typeof value === "string" || typeof value === "number") return leaf(value);
  if (Array.isArray(value)) return mapList(value, leaf, key);
  return isJsonObject(value) ? mapObject(value, leaf, key) : value;
}

function mapList(list: readonly Json[], leaf: Leaf, key: Leaf | undefined): Json[] {
  let copy: Json[] | undefined;
  for (const [index, item] of list.entries()) {
    const mapped = mapJson(item, leaf, key);
    if (mapped !== item) copy ??= list.slice(0, index);
    copy?.push(mapped);
  }
  return copy ?? (list as Json[]);
}

function mapObject(object: JsonObject, leaf: Leaf, keyLeaf: Leaf | undefined): JsonObject {
  let copy: JsonObject | undefined;
  const keys = Object.keys(object);
  for (const [index, key] of keys.entries()) {
    const value = own(object, key) as Json;
    const mapped = mapJson(value, leaf, keyLeaf);
    const name = keyLeaf === undefined ? key : keyLeaf(key);
    if (copy === undefined && (mapped !== value || name !== key)) {
      copy = {};
      for (const before of keys.slice(0, index)) setOwn(copy, before, own(object, before));
    }
    // If the mapped key is not a text, the old key stays.
    if (copy !== undefined) setOwn(copy, typeof name === "object" ? key : String(name), mapped);
  }
  return copy ?? object;
}

/** True if `is` returns true for a text or a number within the value, or, with `keys`, for a key of an object. */
export function someJson(value: Json, is: (leaf: string | number) => boolean, keys = false): boolean {
  if (typeof value === "string" || typeof value === "number") return is(value);
  if (Array.isArray(value)) return value.some((item) => someJson(item, is, keys));
  if (!isJsonObject(value)) return false;
  for (const key of Object.keys(value)) {
    if ((keys && is(key)) || someJson(own(value, key) as Json, is, keys)) return true;
  }
  return false;
}

/** The object with each of its values replaced; the same object if no value changes. */
export function mapValues<T>(object: Record<string, T>, map: (value: T) => T): Record<string, T> {
  let copy: Record<string, T> | undefined;
  for (const key of Object.keys(object)) {
    const value = own(object, key) as T;
    const mapped = map(value);
    if (mapped === value) continue;
    copy ??= { ...object };
    setOwn(copy, key, mapped);
  }
  return copy ?? object;
}
