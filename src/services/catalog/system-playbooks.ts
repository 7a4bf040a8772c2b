import { createHash } from "node:crypto";
import { findNewest } from "../../repositories/catalog/catalog.ts";
import type { Database } from "../../repositories/database/database.ts";
import type { Catalog } from "./catalog.ts";

/** A playbook that comes with the program. */
export interface SystemPlaybook {
  /** Its catalog path. */
  path: string;
  content: string;
}

/**
 * The outcome for one playbook: registered now, or registered before; or kept as it is because an operator `edited` it, or
 * because a `newer` version of the program wrote it.
 */
export interface SystemRegistration {
  path: string;
  outcome: "registered" | "unchanged" | "edited" | "newer";
}

/** What {@link registerSystemPlaybooks} needs. */
export interface SystemPlaybooksDeps {
  database: Database;
  catalog: Pick<Catalog, "register">;
  /** Of this program, `major.minor.patch`. */
  version: string;
}

/**
 * Registers the playbooks that came with the program where they are absent, or older ones that came with it are there. The
 * first line of a supplied document says its version and the SHA-256 of all that follows: whatever an administrator changes,
 * that line is no longer true, and their document stays. So does one of a newer program, which may run beside this one while
 * servers are replaced one by one.
 */
export async function registerSystemPlaybooks(
  { database, catalog, version }: SystemPlaybooksDeps,
  playbooks: readonly SystemPlaybook[],
): Promise<SystemRegistration[]> {
  const registrations: SystemRegistration[] = [];
  for (const { path, content } of playbooks) {
    const supplied = suppliedDocument(content, version);
    const there = await findNewest(database, path);
    const outcome = there === undefined ? "registered" : verdictOn(there.content, supplied, version);
    // Two servers that start at once register the same text: the second one makes no version.
    if (outcome === "registered") await catalog.register({ content: supplied, ifChanged: true });
    registrations.push({ path, outcome });
  }
  return registrations;
}

/** The document with its first line. */
export function suppliedDocument(content: string, version: string): string {
  return `${firstLine(version, content)}\n${content}`;
}

function firstLine(version: string, content: string): string {
  const sha256 = createHash("sha256").update(content).digest("hex");
  return `# Supplied with flow ${version}, sha256 ${sha256}: replaced by that of a newer flow unless it is edited.`;
}

function verdictOn(there: string, supplied: string, version: string): SystemRegistration["outcome"] {
  if (there === supplied) return "unchanged";
  const end = there.indexOf("\n");
  const registered = /^# Supplied with flow (\d+\.\d+\.\d+\S*), sha256 /.exec(there)?.[1];
  const isTrue = registered !== undefined && there.slice(0, end) === firstLine(registered, there.slice(end + 1));
  if (!isTrue) return "edited";
  return isNewer(registered, version) ? "newer" : "registered";
}

/** By major, minor and patch; what else stands behind them counts as none. */
function isNewer(version: string, than: string): boolean {
  const [one, other] = [version, than].map((text) => text.split(/[.+-]/).map(Number));
  for (const index of [0, 1, 2]) {
    const difference = (one?.[index] ?? 0) - (other?.[index] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return false;
}
