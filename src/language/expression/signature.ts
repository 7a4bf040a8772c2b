import { nearest } from "../words/nearest.ts";
import { fault } from "./parsing/fault.ts";
import type { Arguments, Node } from "./parsing/syntax.ts";

/**
 * What a filter, test, method or function takes besides its value. The arguments arrive in one list: `parameters`, then
 * `named`, then everything that is left over when `rest` is true. What was not given is undefined.
 */
export interface Signature {
  readonly parameters?: readonly string[];
  /** How many of `parameters` must be given. Default 0. */
  readonly required?: number;
  /** Parameters that can only be given by name. */
  readonly named?: readonly string[];
  readonly rest?: boolean;
}

/**
 * The arguments of a call in the order of its signature. Throws a fault for one too many or too few, and for a name that
 * is not in the signature. `what` names the callee: `filter "join"`.
 */
export function bindArguments(what: string, signature: Signature, args: Arguments, at: number): (Node | undefined)[] {
  const parameters = signature.parameters ?? [];
  const names = [...parameters, ...(signature.named ?? [])];
  const bound = new Array<Node | undefined>(names.length).fill(undefined);
  const fixed = args.positional.slice(0, parameters.length);
  for (const [i, node] of fixed.entries()) bound[i] = node;
  const left = args.positional.slice(parameters.length);
  if (left.length > 0 && signature.rest !== true) throw fault(`${what} takes ${takes(names)}`, at);
  for (const [name, node] of args.named) {
    const index = names.indexOf(name);
    if (index < 0) throw fault(`${what} has no argument "${name}": it takes ${takes(names)}`, node.at);
    if (bound[index] !== undefined) throw fault(`${what} is given "${name}" twice`, node.at);
    bound[index] = node;
  }
  const missing = parameters.slice(0, signature.required ?? 0).find((_, i) => bound[i] === undefined);
  if (missing !== undefined) throw fault(`${what} needs the argument "${missing}"`, at);
  return trimmed([...bound, ...left]);
}

/** Finds `name` in a table of filters, tests, methods or functions; throws a fault that names the nearest one. */
export function resolve<T>(what: string, table: ReadonlyMap<string, T>, name: string, at: number): T {
  const found = table.get(name);
  if (found !== undefined) return found;
  const near = nearest(name, table.keys());
  const instead = what === "test" ? `; to compare with a value, write == "${name}"` : "";
  const hint = near === undefined ? instead : `; did you mean "${near}"?`;
  throw fault(`there is no ${what} "${name}"${hint}`, at);
}

function takes(names: readonly string[]): string {
  return names.length === 0 ? "no arguments" : `only ${names.join(", ")}`;
}

/** Without the undefined ones at the end: most calls then evaluate no arguments at all. */
function trimmed(nodes: (Node | undefined)[]): (Node | undefined)[] {
  let length = nodes.length;
  while (length > 0 && nodes[length - 1] === undefined) length -= 1;
  return nodes.slice(0, length);
}
