import { createHash } from "node:crypto";

/** Longest name of a tool: what the strictest of the known hosts hand on to their models. */
export const TOOL_NAME_MAX = 64;

/** Between two segments of a path. */
const SLASH = "__";
/** Before the digest of a path that its name cannot say. A name that says its path never has three underscores in a row. */
const DIGEST = "___";
/** Characters of the digest, 64 bits: nobody finds a second path for a name that is taken. */
const DIGEST_CHARS = 16;

/**
 * The name under which the agent of a catalog path is a tool: `ops__restart-pod` for `ops/restart-pod`. It is made of the path
 * alone, so that it stays whatever else is registered, and no two paths have the same. A path that cannot be read back out of
 * such a name (other characters, underscores beside slashes, too long) gets as much of it as there is room for, and a digest:
 * `ops__on_call___2f0c9ab1d3e45f67`.
 */
export function agentToolName(path: string): string {
  const plain = path.replaceAll("/", SLASH);
  if (plain.length <= TOOL_NAME_MAX && path.split("/").every(isPlain)) return plain;
  const digest = createHash("sha256").update(path).digest("hex").slice(0, DIGEST_CHARS);
  const readable = path
    .replaceAll("/", SLASH)
    .replaceAll(/[^a-zA-Z0-9_-]/g, "_")
    .slice(0, TOOL_NAME_MAX - DIGEST.length - DIGEST_CHARS)
    .replaceAll(/_{3,}/g, SLASH)
    .replace(/_+$/, "");
  return `${readable}${DIGEST}${digest}`;
}

/** The path that a name says; undefined for a name with a digest, whose path must be looked for, and for what is no name. */
export function pathOfToolName(name: string): string | undefined {
  const path = name.replaceAll(SLASH, "/");
  return agentToolName(path) === name ? path : undefined;
}

/** True for a name whose path must be looked for. */
export function hasDigest(name: string): boolean {
  return name.length <= TOOL_NAME_MAX && /^[a-zA-Z0-9_-]*___[0-9a-f]{16}$/.test(name);
}

/** Underscores within it are single, and none touches a slash: then `__` can only be one. */
function isPlain(segment: string): boolean {
  return /^[a-zA-Z0-9-]+(?:_[a-zA-Z0-9-]+)*$/.test(segment);
}
