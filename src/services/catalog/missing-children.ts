import { plainPath } from "../../language/document/catalog-path.ts";
import { whyNoPath } from "../../language/load/catalog-document.ts";
import type { ChildCall } from "../../language/load/child-calls.ts";

/** A call of a playbook that the catalog does not have, and why it does not. */
export interface MissingChild extends ChildCall {
  why: string;
}

/** What looks paths up. */
export interface ChildLookup {
  /** The paths among these that are registered. */
  registered(paths: readonly string[]): Promise<ReadonlySet<string>>;
  /** Whether the caller may learn of this path whether it is there. */
  maySee(path: string): Promise<boolean>;
}

/** Literal calls that one document is looked at for. */
export const CALLS_MAX = 200;

/**
 * The paths in literal calls of the playbook at `own` that are not registered; a playbook may call itself. Paths that the
 * caller may not see are left out.
 */
export async function missingChildren(
  own: string | undefined,
  called: readonly ChildCall[],
  lookup: ChildLookup,
): Promise<MissingChild[]> {
  const calls = called
    .slice(0, CALLS_MAX)
    .map((call) => ({ ...call, path: plainPath(call.path) }))
    .filter(({ path }) => path !== own);
  if (calls.length === 0) return [];
  const possible = [...new Set(calls.map(({ path }) => path))].filter((path) => whyNoPath(path) === undefined);
  const there = possible.length === 0 ? new Set<string>() : await lookup.registered(possible);
  const missing: MissingChild[] = [];
  for (const call of calls) {
    const noPath = whyNoPath(call.path);
    if (noPath !== undefined) missing.push({ ...call, why: `cannot be a path of the catalog: ${noPath}` });
    else if (!there.has(call.path) && (await lookup.maySee(call.path))) {
      missing.push({ ...call, why: "is not in the catalog" });
    }
  }
  return missing;
}
