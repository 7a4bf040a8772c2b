import { isSystemPath } from "../../../../src/schema/rules/access-rules.ts";
import { isJsonObject, type Json } from "../../../../src/schema/words/json.ts";

/** Paths of system playbooks that tasks anywhere in a document call, as written. */
export function systemPaths(value: Json): string[] {
  if (Array.isArray(value)) return value.flatMap(systemPaths);
  if (!isJsonObject(value)) return [];
  const path =
    value["kind"] === "playbook" && typeof value["path"] === "string" ? value["path"].replace(/^\/+/, "") : "";
  return [...(isSystemPath(path) ? [path] : []), ...Object.values(value).flatMap(systemPaths)];
}
