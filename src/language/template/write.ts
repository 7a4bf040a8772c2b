import { itemsOf } from "../expression/filter.ts";
import { spendSteps, spendText } from "../expression/parsing/budget.ts";
import { textOf } from "../expression/plain.ts";
import type { Run } from "../expression/run.ts";
import { evaluationError } from "../expression/run.ts";
import { isTrue, kindOf } from "../expression/values.ts";
import type { Scope } from "../views/scope.ts";
import type { Block } from "./blocks.ts";
import type { Compiled, Tag } from "./segments.ts";

/** The text of blocks. Names that they `set` end with it. */
export function renderBlocks(blocks: readonly Block[], run: Run): string {
  const outer = run.scope;
  const frame = openFrame(run);
  run.scope = frame;
  const out: string[] = [];
  writeBlocks(blocks, run, frame, out);
  run.scope = outer;
  return out.join("");
}

/** The names of one loop or text, in front of those around it. */
interface Frame extends Scope {
  readonly bound: Map<string, unknown>;
}

function openFrame({ scope: outer, budget }: Run): Frame {
  const bound = new Map<string, unknown>();
  return {
    bound,
    lookup(name) {
      if (bound.has(name)) return bound.get(name);
      // Each loop around a name makes it dearer to look up.
      spendSteps(budget, 1);
      return outer.lookup(name);
    },
    names: () => new Set([...bound.keys(), ...outer.names()]),
  };
}

/**
 * Renders blocks one after the other. Names that `set` and `for` bind go to `frame`, which is `run.scope`. The pieces of
 * text are added to `out`, their length is taken from the budget first.
 */
function writeBlocks(blocks: readonly Block[], run: Run, frame: Frame, out: string[]): void {
  for (const block of blocks) {
    spendSteps(run.budget, 1);
    switch (block.kind) {
      case "text":
        write(block.text, run, out);
        break;
      case "output":
        write(textOf(block.expression.evaluate(run), run.budget), run, out);
        break;
      case "if": {
        const chosen = block.branches.find(({ test }) => test === undefined || isTrue(test.evaluate(run), run.budget));
        if (chosen !== undefined) writeBlocks(chosen.body, run, frame, out);
        break;
      }
      case "for":
        writeLoop(block, run, out);
        break;
      case "set":
        bind(frame, block.targets, assigned(block.value, run, frame), run);
        break;
    }
  }
}

function write(text: string, run: Run, out: string[]): void {
  spendText(run.budget, text.length);
  out.push(text);
}

function assigned(value: Compiled | readonly Block[], run: Run, frame: Frame): unknown {
  if ("evaluate" in value) return value.evaluate(run);
  const out: string[] = [];
  writeBlocks(value, run, frame, out);
  return out.join("");
}

function writeLoop(block: Extract<Block, { kind: "for" }>, run: Run, out: string[]): void {
  const { targets, list, filter } = block.tag;
  const value = list.evaluate(run);
  const items = itemsOf(value, run);
  if (items === undefined) throw evaluationError(run, `a loop goes over a list, map or text, and got ${kindOf(value)}`);
  const outer = run.scope;
  const frame = openFrame(run);
  run.scope = frame;
  const rounds = filter === undefined ? items : items.filter((item) => isChosen(item, block.tag, run, frame));
  for (const [i, item] of rounds.entries()) {
    spendSteps(run.budget, 2);
    frame.bound.clear();
    bind(frame, targets, item, run);
    frame.bound.set("loop", roundOf(i, rounds.length));
    writeBlocks(block.body, run, frame, out);
  }
  frame.bound.clear();
  if (rounds.length === 0) writeBlocks(block.otherwise, run, frame, out);
  run.scope = outer;
}

function isChosen(item: unknown, tag: Extract<Tag, { word: "for" }>, run: Run, frame: Frame): boolean {
  spendSteps(run.budget, 2);
  frame.bound.clear();
  bind(frame, tag.targets, item, run);
  return isTrue(tag.filter?.evaluate(run), run.budget);
}

/** What `loop` is in one round. */
function roundOf(index0: number, length: number): Record<string, number | boolean> {
  return {
    index: index0 + 1,
    index0,
    revindex: length - index0,
    revindex0: length - index0 - 1,
    first: index0 === 0,
    last: index0 === length - 1,
    length,
  };
}

/** One name takes the value, several take its items: `for key, value in map.items()`. */
function bind(frame: Frame, targets: readonly string[], value: unknown, run: Run): void {
  const [only] = targets;
  if (targets.length === 1 && only !== undefined) {
    frame.bound.set(only, value);
    return;
  }
  const items = itemsOf(value, run);
  if (items?.length !== targets.length) {
    throw evaluationError(
      run,
      `${targets.length} names need a list of ${targets.length} items, and got ${kindOf(value)}`,
    );
  }
  for (const [i, target] of targets.entries()) frame.bound.set(target, items[i]);
}
