import { FlowError } from "../../schema/words/errors.ts";
import { NESTING_MAX } from "../expression/parsing/budget.ts";
import { excerpt } from "../expression/parsing/fault.ts";
import type { NeedsDraft } from "./needs.ts";
import { collectNeeds } from "./needs.ts";
import type { Compiled, Segment, Tag, TextProblem } from "./segments.ts";

/** A part of a template text after its tags have found their partners. */
export type Block =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "output"; readonly expression: Compiled }
  | { readonly kind: "if"; readonly branches: readonly Branch[] }
  | {
      readonly kind: "for";
      readonly tag: Extract<Tag, { word: "for" }>;
      readonly body: readonly Block[];
      readonly otherwise: readonly Block[];
    }
  | { readonly kind: "set"; readonly targets: readonly string[]; readonly value: Compiled | readonly Block[] };

/** One way through an `if`; without a test it is the `else`. */
interface Branch {
  readonly test: Compiled | undefined;
  readonly body: readonly Block[];
}

/**
 * Finds the partner of every tag. A tag without one is literal text and a problem; blocks nested more than 200 deep are
 * a `TEMPLATE_BUDGET` problem and no block at all.
 */
export function nestBlocks(segments: readonly Segment[]): { blocks: Block[]; problems: TextProblem[] } {
  const { unmatched, problems } = findUnmatchedTags(segments);
  if (problems.some(({ error }) => error.code === "TEMPLATE_BUDGET")) return { blocks: [], problems };
  return { blocks: readBody({ segments, unmatched, index: 0 }), problems };
}

/** A block that is open while partners are looked for: its tags so far, by their index among the segments. */
interface OpenBlock {
  readonly end: string;
  readonly tags: number[];
  hasElse: boolean;
}

function findUnmatchedTags(segments: readonly Segment[]): { unmatched: Set<number>; problems: TextProblem[] } {
  const unmatched = new Set<number>();
  const problems: TextProblem[] = [];
  const open: OpenBlock[] = [];
  const abandon = (index: number, why: string): void => {
    unmatched.add(index);
    problems.push(problemOf(segments[index]!, why));
  };
  for (const [index, segment] of segments.entries()) {
    if (segment.kind !== "tag") continue;
    const { tag } = segment;
    const innermost = open.at(-1);
    if (opensBlock(tag)) {
      open.push({ end: `end${tag.word}`, tags: [index], hasElse: false });
      if (open.length > NESTING_MAX) {
        problems.push(problemOf(segment, `blocks are nested more than ${NESTING_MAX} deep`, "TEMPLATE_BUDGET"));
        return { unmatched, problems };
      }
    } else if (tag.word === "else" || tag.word === "elif") {
      const fits = innermost?.end === "endif" || (innermost?.end === "endfor" && tag.word === "else");
      if (innermost !== undefined && fits && !innermost.hasElse) {
        innermost.tags.push(index);
        innermost.hasElse = tag.word === "else";
      } else {
        abandon(index, `"${tag.word}" stands in no block that takes it`);
      }
    } else if (tag.word !== "set") {
      const partner = open.findLastIndex((block) => block.end === tag.word);
      if (partner < 0) {
        abandon(index, `"${tag.word}" ends no block`);
        continue;
      }
      for (const block of open.splice(partner).slice(1)) for (const each of block.tags) abandon(each, missing(block));
    }
  }
  for (const block of open) for (const each of block.tags) abandon(each, missing(block));
  return { unmatched, problems };
}

function opensBlock(tag: Tag): boolean {
  return tag.word === "if" || tag.word === "for" || (tag.word === "set" && tag.value === undefined);
}

function missing(block: OpenBlock): string {
  return `"{% ${block.end} %}" is missing`;
}

function problemOf(
  segment: Segment,
  why: string,
  code: "TEMPLATE_ERROR" | "TEMPLATE_BUDGET" = "TEMPLATE_ERROR",
): TextProblem {
  const offset = segment.kind === "tag" ? segment.at : 0;
  const message = `Cannot read ${excerpt(segment.source)}: ${why}`;
  return { offset, message, error: new FlowError(code, message, { detail: { offset } }) };
}

interface Place {
  readonly segments: readonly Segment[];
  readonly unmatched: ReadonlySet<number>;
  index: number;
}

/** Reads blocks up to the tag that ends or divides the surrounding one, which is left to the caller. */
function readBody(place: Place): Block[] {
  const blocks: Block[] = [];
  for (; place.index < place.segments.length; place.index += 1) {
    const segment = place.segments[place.index]!;
    if (segment.kind === "text") blocks.push({ kind: "text", text: segment.text });
    else if (segment.kind === "output") blocks.push({ kind: "output", expression: segment.expression });
    else if (place.unmatched.has(place.index)) blocks.push({ kind: "text", text: segment.source });
    else {
      const { tag } = segment;
      if (tag.word === "if") blocks.push(readIf(place, tag.test));
      else if (tag.word === "for") blocks.push(readFor(place, tag));
      else if (tag.word === "set") blocks.push(readSet(place, tag.targets, tag.value));
      else return blocks;
    }
  }
  return blocks;
}

/** The tag at which {@link readBody} stopped. */
function tagAt({ segments, index }: Place): Tag | undefined {
  const segment = segments[index];
  return segment?.kind === "tag" ? segment.tag : undefined;
}

function readInside(place: Place): Block[] {
  place.index += 1;
  return readBody(place);
}

function readIf(place: Place, test: Compiled): Block {
  const branches: Branch[] = [{ test, body: readInside(place) }];
  for (let tag = tagAt(place); tag?.word === "elif" || tag?.word === "else"; tag = tagAt(place)) {
    branches.push({ test: tag.word === "elif" ? tag.test : undefined, body: readInside(place) });
  }
  return { kind: "if", branches };
}

function readFor(place: Place, tag: Extract<Tag, { word: "for" }>): Block {
  const body = readInside(place);
  const otherwise = tagAt(place)?.word === "else" ? readInside(place) : [];
  return { kind: "for", tag, body, otherwise };
}

function readSet(place: Place, targets: readonly string[], value: Compiled | undefined): Block {
  return { kind: "set", targets, value: value ?? readInside(place) };
}

/** Every expression of the blocks, in the order of the text. */
export function* expressionsOf(blocks: readonly Block[]): Iterable<Compiled> {
  for (const block of blocks) {
    switch (block.kind) {
      case "text":
        break;
      case "output":
        yield block.expression;
        break;
      case "if":
        for (const { test, body } of block.branches) {
          if (test !== undefined) yield test;
          yield* expressionsOf(body);
        }
        break;
      case "for":
        yield block.tag.list;
        if (block.tag.filter !== undefined) yield block.tag.filter;
        yield* expressionsOf(block.body);
        yield* expressionsOf(block.otherwise);
        break;
      case "set":
        if ("evaluate" in block.value) yield block.value;
        else yield* expressionsOf(block.value);
        break;
    }
  }
}

/**
 * Adds what the blocks read to the draft. `bound` grows with what they `set`; names set inside an `if` may not be, so
 * they stay free behind it.
 */
export function collectBlockNeeds(blocks: readonly Block[], bound: Set<string>, draft: NeedsDraft): void {
  for (const block of blocks) {
    switch (block.kind) {
      case "text":
        break;
      case "output":
        collectNeeds(block.expression.root, bound, draft);
        break;
      case "if":
        for (const { test, body } of block.branches) {
          if (test !== undefined) collectNeeds(test.root, bound, draft);
          collectBlockNeeds(body, new Set(bound), draft);
        }
        break;
      case "for": {
        collectNeeds(block.tag.list.root, bound, draft);
        const inside = new Set([...bound, ...block.tag.targets, "loop"]);
        if (block.tag.filter !== undefined) collectNeeds(block.tag.filter.root, inside, draft);
        collectBlockNeeds(block.body, inside, draft);
        collectBlockNeeds(block.otherwise, new Set(bound), draft);
        break;
      }
      case "set":
        if ("evaluate" in block.value) collectNeeds(block.value.root, bound, draft);
        else collectBlockNeeds(block.value, new Set(bound), draft);
        for (const target of block.targets) bound.add(target);
        break;
    }
  }
}
