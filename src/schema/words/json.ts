/** Any JSON value: what events, results and inputs are made of. */
export type Json = null | boolean | number | string | Json[] | JsonObject;

/** A JSON object. Keys are data, never trusted: read them with own-property checks. */
export interface JsonObject {
  [key: string]: Json;
}

/** True for a JSON object: not null, not a list, and not an instance of a class. */
export function isJsonObject(value: unknown): value is JsonObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** The object's own field, or undefined. Never reaches a prototype (`constructor`, `toString`). */
export function own(object: object, key: string): unknown {
  return Object.hasOwn(object, key) ? (object as Record<string, unknown>)[key] : undefined;
}

/**
 * Sets an own field even when it is called `__proto__`, which a plain assignment would turn into a change of prototype.
 */
export function setOwn(object: object, key: string, value: unknown): void {
  if (key === "__proto__") {
    Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  } else {
    (object as Record<string, unknown>)[key] = value;
  }
}

/** About the length of a value as JSON, without writing it. */
export function jsonSize(value: Json): number {
  if (typeof value === "string") return value.length + 3;
  if (Array.isArray(value)) return value.reduce<number>((size, item) => size + jsonSize(item), 2);
  if (typeof value === "object" && value !== null) {
    return Object.entries(value).reduce((size, [key, item]) => size + key.length + 4 + jsonSize(item), 2);
  }
  return 8;
}
