import { field, type Place, textOf } from "./source/place.ts";
import { legacy, type Reading } from "./source/reading.ts";

/** The catalog path without slashes at its beginning, which mean nothing: `/area/topic` is `area/topic`. */
export function plainPath(path: string): string {
  return path.replace(/^\/+/, "");
}

/** `metadata.path`, without a slash at its beginning, which gives a warning; undefined if it is missing. */
export function readPath(reading: Reading, metadata: Place | undefined): string | undefined {
  const place = field(metadata, "path");
  const written = textOf(place);
  if (place === undefined || written === undefined) return undefined;
  const path = plainPath(written);
  if (path !== written) legacy(reading, place, "a path that begins with a slash", `\`path: ${path}\``);
  return path;
}
