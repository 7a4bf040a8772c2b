import fc from "fast-check";
import { oddText } from "../engine/odd-text.ts";

/** Any JSON value, and those that numbers, columns and limits stumble over. */
export const oddValue = fc.oneof(
  fc.jsonValue(),
  oddText,
  fc.constantFrom(-1, 0, 1.5, 2 ** 31, 2 ** 53, 1e308, "9007199254740993", null, [], {}, "x".repeat(3_000)),
);

/** The value with one part of it, however deep, replaced or left out. */
export function bent(value: unknown, choose: (places: number) => number, odd: unknown): unknown {
  const places = placesOf(value, []);
  const place = places[choose(places.length)] ?? [];
  return replaced(value, place, odd);
}

function placesOf(value: unknown, path: string[]): string[][] {
  if (typeof value !== "object" || value === null) return [path];
  return [path, ...Object.entries(value).flatMap(([key, part]) => placesOf(part, [...path, key]))];
}

function replaced(value: unknown, [key, ...rest]: string[], odd: unknown): unknown {
  if (key === undefined) return odd;
  const copy: Record<string, unknown> | unknown[] = Array.isArray(value) ? [...value] : { ...(value as object) };
  const part = (copy as Record<string, unknown>)[key];
  (copy as Record<string, unknown>)[key] = replaced(part, rest, odd);
  return copy;
}
