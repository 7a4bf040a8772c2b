import type { Json } from "../../schema/words/json.ts";
import { parseExpression } from "../expression/parsing/parse.ts";
import { childrenOf, type Node } from "../expression/parsing/syntax.ts";
import { expressionsOf, nestBlocks } from "./blocks.ts";
import { scan } from "./segments.ts";

/**
 * Fields such as `workload.region` that a value's templates read as something that may be absent: with a default, a test whether
 * they are defined, an `or`, or within a condition. `isCondition`: a text without braces is an expression.
 */
export function optionalReads(value: Json, isCondition: boolean, found: Set<string>): void {
  if (typeof value === "string") {
    for (const root of rootsOf(value, isCondition)) collect(root, isCondition, found);
  } else if (typeof value === "object" && value !== null) {
    for (const inner of Object.values(value)) optionalReads(inner, false, found);
  }
}

function rootsOf(text: string, isCondition: boolean): Node[] {
  if (/\{[{%]/.test(text)) return [...expressionsOf(nestBlocks(scan(text).segments).blocks)].map(({ root }) => root);
  if (!isCondition || text.trim() === "") return [];
  try {
    return [parseExpression(text).root];
  } catch {
    // It has been reported.
    return [];
  }
}

function collect(node: Node, isOptional: boolean, found: Set<string>): void {
  if (isOptional && (node.kind === "member" || node.kind === "index") && node.of.kind === "name") {
    const key = node.kind === "member" ? node.key : node.key.kind === "literal" ? node.key.value : undefined;
    if (key !== undefined) found.add(`${node.of.name}.${String(key)}`);
  }
  if (node.kind === "method" && node.name === "get" && node.of.kind === "name") {
    const [key] = node.args.positional;
    if (key?.kind === "literal") found.add(`${node.of.name}.${String(key.value)}`);
  }
  const tolerates =
    (node.kind === "filter" && TOLERANT_FILTERS.has(node.name)) ||
    (node.kind === "test" && TOLERANT_TESTS.has(node.name)) ||
    (node.kind === "logic" && node.op === "or") ||
    node.kind === "not";
  for (const child of childrenOf(node)) {
    const isTest = node.kind === "choice" && child === node.test;
    collect(child, tolerates || isTest || (isOptional && PASSES_ON.has(node.kind)), found);
  }
}

const TOLERANT_FILTERS: ReadonlySet<string> = new Set(["default", "d"]);
const TOLERANT_TESTS: ReadonlySet<string> = new Set(["defined", "undefined", "none", "null"]);
/** What is absent within these is absent as a whole: `workload.a.b | default(1)`. */
const PASSES_ON: ReadonlySet<Node["kind"]> = new Set(["member", "index", "filter", "logic", "compare", "method"]);
