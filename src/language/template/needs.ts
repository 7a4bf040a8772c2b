import type { Node } from "../expression/parsing/syntax.ts";
import { childrenOf } from "../expression/parsing/syntax.ts";

/**
 * The names that a template reads, known without evaluating it: what has to be loaded or sent before it can run. It may
 * name too much (both branches of a choice count), never too little.
 */
export interface Needs {
  /** Every name that is not bound by a loop or `set` of the template itself. */
  readonly names: ReadonlySet<string>;
  /**
   * For each of {@link MEMBER_ROOTS} among the names: the fields read from it, or "all" when that cannot be known
   * (`steps[x]`, `ctx|tojson`).
   */
  readonly members: ReadonlyMap<string, ReadonlySet<string> | "all">;
}

/** Names whose fields are listed one by one: they are large, or what they hold has to be loaded. */
const MEMBER_ROOTS: ReadonlySet<string> = new Set([
  "workload",
  "ctx",
  "vars",
  "steps",
  "keychain",
  "env",
  "iter",
  "spec",
]);

/** Everything that any of `all` needs. */
export function mergeNeeds(...all: readonly Needs[]): Needs {
  const draft = openNeeds();
  for (const { names, members } of all) {
    for (const name of names) draft.names.add(name);
    for (const [root, fields] of members) {
      if (fields === "all") draft.members.set(root, "all");
      else for (const field of fields) addMember(draft, root, field);
    }
  }
  return draft;
}

/** Needs that are still being collected. */
export interface NeedsDraft extends Needs {
  readonly names: Set<string>;
  readonly members: Map<string, Set<string> | "all">;
}

/** An empty draft. */
export function openNeeds(): NeedsDraft {
  return { names: new Set(), members: new Map() };
}

/** Adds what the expression `node` reads, names in `bound` excepted. */
export function collectNeeds(node: Node, bound: ReadonlySet<string>, draft: NeedsDraft): void {
  const field = fieldOfRoot(node, bound);
  if (field !== undefined) {
    draft.names.add(field.root);
    addMember(draft, field.root, field.key);
    if (node.kind === "method") for (const child of childrenOf(node).slice(1)) collectNeeds(child, bound, draft);
    return;
  }
  if (node.kind === "name" && !bound.has(node.name)) {
    draft.names.add(node.name);
    if (MEMBER_ROOTS.has(node.name)) draft.members.set(node.name, "all");
  }
  for (const child of childrenOf(node)) collectNeeds(child, bound, draft);
}

/** `root.key`, `root["key"]` and `root.get("key")` of a free root. */
function fieldOfRoot(node: Node, bound: ReadonlySet<string>): { root: string; key: string } | undefined {
  if (node.kind !== "member" && node.kind !== "index" && node.kind !== "method") return undefined;
  const { of } = node;
  if (of.kind !== "name" || bound.has(of.name) || !MEMBER_ROOTS.has(of.name)) return undefined;
  const key = literalKey(node);
  return key === undefined ? undefined : { root: of.name, key };
}

function literalKey(node: Extract<Node, { kind: "member" | "index" | "method" }>): string | undefined {
  if (node.kind === "member") return String(node.key);
  const key = node.kind === "index" ? node.key : node.name === "get" ? node.args.positional[0] : undefined;
  return key?.kind === "literal" && typeof key.value === "string" ? key.value : undefined;
}

function addMember(draft: NeedsDraft, root: string, field: string): void {
  const known = draft.members.get(root);
  if (known === "all") return;
  if (known === undefined) draft.members.set(root, new Set([field]));
  else known.add(field);
}
