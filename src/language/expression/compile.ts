import { FlowError } from "../../schema/words/errors.ts";
import { setOwn } from "../../schema/words/json.ts";
import { isEqual, isIn, order } from "./equality.ts";
import { FILTERS } from "./filters.ts";
import { FUNCTIONS } from "./functions.ts";
import { memberOf, sliceOf } from "./lookup.ts";
import { METHODS } from "./methods.ts";
import { arithmetic, concatenate, signed } from "./operators.ts";
import { spendSteps } from "./parsing/budget.ts";
import { inContext } from "./parsing/fault.ts";
import type { CompareOperator, Expression, Node } from "./parsing/syntax.ts";
import { PREDICATES } from "./predicates.ts";
import type { Run } from "./run.ts";
import { evaluationError } from "./run.ts";
import { bindArguments, resolve } from "./signature.ts";
import { isTrue, kindOf, numeric, unwrap } from "./values.ts";

/** A compiled expression. The value may be undefined, a view, or hold views inside: `toJson` makes JSON of it. */
export type Evaluate = (run: Run) => unknown;

/**
 * Compiles an expression to closures. Throws `TEMPLATE_ERROR` for a filter, test, method or function that does not exist,
 * and for arguments that one does not take; `offsetOf` gives the place.
 */
export function compileExpression({ source, root }: Expression): Evaluate {
  const counter = { nodes: 0 };
  const evaluate = compileRoot(source, root, counter);
  const steps = counter.nodes;
  // An expression contains no loops, so that its steps are counted once and in advance.
  return (run) => {
    run.source = source;
    spendSteps(run.budget, steps);
    return evaluate(run);
  };
}

function compileRoot(source: string, root: Node, counter: Counter): Evaluate {
  try {
    return compile(root, counter);
  } catch (error) {
    throw error instanceof FlowError ? inContext(error, source) : error;
  }
}

interface Counter {
  nodes: number;
}

function compile(node: Node, counter: Counter): Evaluate {
  counter.nodes += 1;
  const inner = (child: Node): Evaluate => compile(child, counter);
  switch (node.kind) {
    case "literal": {
      const { value } = node;
      return () => value;
    }
    case "name": {
      const { name } = node;
      return (run) => run.scope.lookup(name);
    }
    case "member": {
      const of = inner(node.of);
      const { key } = node;
      return (run) => memberOf(of(run), key, run);
    }
    case "index": {
      const of = inner(node.of);
      const key = inner(node.key);
      return (run) => memberOf(of(run), key(run), run);
    }
    case "list": {
      const items = node.items.map(inner);
      return (run) => items.map((item) => item(run));
    }
    case "logic":
      return compileLogic(node.op, node.operands.map(inner));
    case "not": {
      const of = inner(node.of);
      return (run) => !isTrue(of(run), run.budget);
    }
    case "compare":
      return compileCompare(node, inner);
    case "binary": {
      const left = inner(node.left);
      const right = inner(node.right);
      const { op } = node;
      return (run) => arithmetic(op, left(run), right(run), run);
    }
    case "concat": {
      const operands = node.operands.map(inner);
      return (run) =>
        concatenate(
          operands.map((operand) => operand(run)),
          run,
        );
    }
    case "choice": {
      const test = inner(node.test);
      const then = inner(node.then);
      const otherwise = node.otherwise === undefined ? nothing : inner(node.otherwise);
      return (run) => (isTrue(test(run), run.budget) ? then(run) : otherwise(run));
    }
    case "sign": {
      const of = inner(node.of);
      const { op } = node;
      return (run) => signed(op, of(run), run);
    }
    case "slice":
      return compileSlice(node, inner);
    case "map":
      return compileMap(node.entries.map(([key, value]) => [inner(key), inner(value)]));
    default:
      return compileCall(node, inner);
  }
}

const nothing: Evaluate = () => undefined;

type SliceNode = Extract<Node, { kind: "slice" }>;

function compileSlice(node: SliceNode, inner: (child: Node) => Evaluate): Evaluate {
  const bound = (part: Node | undefined): Evaluate => (part === undefined ? nothing : inner(part));
  const of = inner(node.of);
  const start = bound(node.start);
  const stop = bound(node.stop);
  const step = bound(node.step);
  return (run) => sliceOf(of(run), start(run), stop(run), step(run), run);
}

type CallNode = Extract<Node, { kind: "filter" | "test" | "method" | "call" }>;

function compileCall(node: CallNode, inner: (child: Node) => Evaluate): Evaluate {
  const { name } = node;
  switch (node.kind) {
    case "filter": {
      const filter = resolve("filter", FILTERS, name, node.at);
      const args = compileArguments(bindArguments(`filter "${name}"`, filter, node.args, node.at), inner);
      const of = inner(node.of);
      return (run) => filter.apply(of(run), args(run), run);
    }
    case "test": {
      const predicate = resolve("test", PREDICATES, name, node.at);
      const args = compileArguments(bindArguments(`test "${name}"`, predicate, node.args, node.at), inner);
      const of = inner(node.of);
      const wanted = !node.negated;
      return (run) => predicate.holds(of(run), args(run), run) === wanted;
    }
    case "method": {
      const method = resolve("method", METHODS, name, node.at);
      const args = compileArguments(bindArguments(`method "${name}"`, method, node.args, node.at), inner);
      const of = inner(node.of);
      return (run) => method.call(of(run), args(run), run);
    }
    case "call": {
      const callee = resolve("function", FUNCTIONS, name, node.at);
      if (callee.anyNames === true) {
        const args = compileArguments([...node.args.positional, ...node.args.named.values()], inner);
        const names = [...node.args.named.keys()];
        return (run) => callee.call(args(run), run, names);
      }
      const args = compileArguments(bindArguments(`function "${name}"`, callee, node.args, node.at), inner);
      return (run) => callee.call(args(run), run, NONE);
    }
  }
}

const NONE: readonly string[] = [];

function compileArguments(
  nodes: readonly (Node | undefined)[],
  inner: (child: Node) => Evaluate,
): (run: Run) => readonly unknown[] {
  const args = nodes.map((node) => (node === undefined ? nothing : inner(node)));
  return args.length === 0 ? () => NONE : (run) => args.map((arg) => arg(run));
}

/** `and` and `or` return the operand that decides, as in Python. */
function compileLogic(op: "and" | "or", operands: readonly Evaluate[]): Evaluate {
  const decides = op === "or";
  const [first, second] = operands;
  if (operands.length === 2 && first !== undefined && second !== undefined) {
    return (run) => {
      const value = first(run);
      return isTrue(value, run.budget) === decides ? value : second(run);
    };
  }
  return (run) => {
    let value: unknown;
    for (const operand of operands) {
      value = operand(run);
      if (isTrue(value, run.budget) === decides) return value;
    }
    return value;
  };
}

type CompareNode = Extract<Node, { kind: "compare" }>;

/** `a < b < c` is `a < b and b < c` with b evaluated once. */
function compileCompare(node: CompareNode, inner: (child: Node) => Evaluate): Evaluate {
  const first = inner(node.first);
  const links = node.rest.map(({ op, right }) => ({ right: inner(right), holds: comparison(op) }));
  const [only] = links;
  if (links.length === 1 && only !== undefined) {
    const { right, holds } = only;
    return (run) => holds(first(run), right(run), run);
  }
  return (run) => {
    let left = first(run);
    for (const { right, holds } of links) {
      const value = right(run);
      if (!holds(left, value, run)) return false;
      left = value;
    }
    return true;
  };
}

function comparison(op: CompareOperator): (left: unknown, right: unknown, run: Run) => boolean {
  switch (op) {
    case "==":
      return (left, right, run) => isEqual(left, right, run.budget);
    case "!=":
      return (left, right, run) => !isEqual(left, right, run.budget);
    case "in":
      return isIn;
    case "not in":
      return (left, right, run) => !isIn(left, right, run);
    case "<":
      return (left, right, run) => (order(left, right, run) ?? 1) < 0;
    case "<=":
      return (left, right, run) => (order(left, right, run) ?? 1) <= 0;
    case ">":
      return (left, right, run) => (order(left, right, run) ?? -1) > 0;
    case ">=":
      return (left, right, run) => (order(left, right, run) ?? -1) >= 0;
  }
}

function compileMap(entries: readonly (readonly Evaluate[])[]): Evaluate {
  return (run) => {
    const map = {};
    for (const [key, value] of entries) setOwn(map, keyOf(key!(run), run), value!(run));
    return map;
  };
}

function keyOf(value: unknown, run: Run): string {
  const inner = unwrap(value);
  if (typeof inner === "string") return inner;
  if (numeric(inner) !== undefined) return String(inner);
  throw evaluationError(run, `the key of a map is text, and got ${kindOf(inner)}; a key that is a word needs quotes`);
}
