/*
 * The syntax tree of an expression. `at` is the offset of the node's first character (of its operator, for postfix
 * nodes) in the text that was parsed. Names of filters, tests, functions and methods are resolved by the compiler.
 */

/** Arguments of a call, in order; keyword arguments follow the positional ones. */
export interface Arguments {
  readonly positional: readonly Node[];
  readonly named: ReadonlyMap<string, Node>;
}

/** Operators of {@link Node} kind `binary`. */
export type BinaryOperator = "+" | "-" | "*" | "/" | "//" | "%" | "**";

/** Operators of {@link Node} kind `compare`. */
export type CompareOperator = "==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "not in";

/** One node of the tree. */
export type Node = { readonly at: number } & (
  | { readonly kind: "literal"; readonly value: null | boolean | number | string }
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "list"; readonly items: readonly Node[] }
  | { readonly kind: "map"; readonly entries: readonly (readonly [key: Node, value: Node])[] }
  | { readonly kind: "member"; readonly of: Node; readonly key: string | number }
  | { readonly kind: "index"; readonly of: Node; readonly key: Node }
  | {
      readonly kind: "slice";
      readonly of: Node;
      readonly start: Node | undefined;
      readonly stop: Node | undefined;
      readonly step: Node | undefined;
    }
  | { readonly kind: "call"; readonly name: string; readonly args: Arguments }
  | { readonly kind: "method"; readonly of: Node; readonly name: string; readonly args: Arguments }
  | { readonly kind: "filter"; readonly of: Node; readonly name: string; readonly args: Arguments }
  | {
      readonly kind: "test";
      readonly of: Node;
      readonly name: string;
      readonly args: Arguments;
      readonly negated: boolean;
    }
  | { readonly kind: "sign"; readonly op: "-" | "+"; readonly of: Node }
  | { readonly kind: "binary"; readonly op: BinaryOperator; readonly left: Node; readonly right: Node }
  | {
      readonly kind: "compare";
      readonly first: Node;
      readonly rest: readonly { readonly op: CompareOperator; readonly right: Node }[];
    }
  | { readonly kind: "logic"; readonly op: "and" | "or"; readonly operands: readonly Node[] }
  | { readonly kind: "not"; readonly of: Node }
  | { readonly kind: "concat"; readonly operands: readonly Node[] }
  | { readonly kind: "choice"; readonly test: Node; readonly then: Node; readonly otherwise: Node | undefined }
);

/** A parsed expression with its text. */
export interface Expression {
  readonly source: string;
  readonly root: Node;
}

/** The nodes directly below `node`, in the order of the text. */
export function childrenOf(node: Node): readonly Node[] {
  switch (node.kind) {
    case "literal":
    case "name":
      return [];
    case "list":
      return node.items;
    case "map":
      return node.entries.flat();
    case "member":
    case "sign":
    case "not":
      return [node.of];
    case "index":
      return [node.of, node.key];
    case "slice":
      return [node.of, node.start, node.stop, node.step].filter((part) => part !== undefined);
    case "call":
      return argumentsOf(node.args);
    case "method":
    case "filter":
    case "test":
      return [node.of, ...argumentsOf(node.args)];
    case "binary":
      return [node.left, node.right];
    case "compare":
      return [node.first, ...node.rest.map((link) => link.right)];
    case "logic":
    case "concat":
      return node.operands;
    case "choice":
      return node.otherwise === undefined ? [node.then, node.test] : [node.then, node.test, node.otherwise];
  }
}

/** Every text literal below `node`, itself included. */
export function textLiterals(node: Node): string[] {
  const found: string[] = [];
  const open: Node[] = [node];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (next.kind === "literal" && typeof next.value === "string") found.push(next.value);
    open.push(...childrenOf(next));
  }
  return found;
}

function argumentsOf(args: Arguments): readonly Node[] {
  return [...args.positional, ...args.named.values()];
}
