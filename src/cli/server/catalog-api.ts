import { ResourceAnswer } from "../../schema/api/catalog.ts";
import { callServer } from "./client.ts";
import type { ServerTarget } from "./target.ts";

/** One version of a catalog entry, the newest one by default. Throws `FlowError` NOT_FOUND, and as `callServer` does. */
export function readResource(
  target: ServerTarget,
  path: string,
  version: string | undefined,
  signal: AbortSignal,
): Promise<ResourceAnswer> {
  const query = version === undefined ? "" : `?version=${encodeURIComponent(version)}`;
  const address = `/api/catalog/resource/${encodePath(path)}${query}`;
  return callServer(target, { method: "GET", path: address, answer: ResourceAnswer, signal });
}

/** A catalog path as a part of an address: slashes part it and stay, all else that means something there is encoded. */
export function encodePath(path: string): string {
  return path.split("/").map(encodeURIComponent).join("/");
}
