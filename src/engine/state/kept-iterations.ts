import type { EventOf, KeptLoop } from "../../schema/words/event.ts";
import { type Json, own } from "../../schema/words/json.ts";
import type { LoopResult, StoredResult } from "../../schema/words/result.ts";
import type { LoopState, StepState } from "./state.ts";

/*
 * How a loop of a rerun takes over the iterations that succeeded before: those whose item is equal. Results in the state are taken
 * over with `loop.started`, those of stored parts one part after the other (`loop.results.kept`), as a part has to be read.
 */

/** Takes over what is at hand; what is stored is to be looked through. Changes both in place, as `evolve` does. */
export function adoptKept(loop: LoopState, step: StepState): void {
  const { kept } = step;
  if (kept === undefined || loop.cursor !== null) {
    delete step.kept;
    return;
  }
  const entries = reusable(loop, kept, kept.tail);
  loop.tail = entries;
  loop.tailBytes = entries.reduce((sum, [, result]) => sum + JSON.stringify(result).length, 0);
  loop.success = entries.length;
  loop.reused = rangesOf(entries.map(([index]) => index));
  loop.next = nextToRun(loop, 0);
  if (kept.parts.length > 0) loop.unchecked = [...kept.parts];
  else delete step.kept;
}

/** A stored part was looked through. */
export function checkedPart(loop: LoopState, step: StepState, event: EventOf<"loop.results.kept">): void {
  loop.unchecked = loop.unchecked?.filter(({ ref }) => ref !== event.ref) ?? [];
  if (event.part !== undefined) loop.parts.push(event.part);
  for (const [from, to] of event.iterations) loop.success += to - from;
  loop.reused = merged([...(loop.reused ?? []), ...event.iterations]);
  loop.next = nextToRun(loop, 0);
  if (loop.unchecked.length > 0) return;
  delete loop.unchecked;
  delete step.kept;
}

/** Of some results of the run before those of iterations that succeeded and have the same item as now. */
export function reusable(loop: LoopState, kept: KeptLoop, entries: LoopResult["tail"]): LoopResult["tail"] {
  return entries.filter(
    ([index, result]) => index < (loop.total ?? 0) && !isFailed(result) && isSameItem(loop, kept, index),
  );
}

/** As `evolve-loop` writes the result of an iteration that failed. */
function isFailed({ value, failed }: StoredResult): boolean {
  if (failed === true) return true;
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const error = own(value, "error") as Json | undefined;
  const isError = typeof error === "object" && error !== null && !Array.isArray(error);
  return own(value, "status") === "error" && isError && Object.keys(value).length === 2 && Object.hasOwn(error, "kind");
}

function isSameItem(loop: LoopState, kept: KeptLoop, index: number): boolean {
  if (loop.items === null || kept.items === null) return loop.items === kept.items && index < kept.total;
  return index < kept.items.length && JSON.stringify(loop.items[index]) === JSON.stringify(kept.items[index]);
}

type Left = Pick<LoopState, "reused" | "endedAhead">;

/** Iterations that are not issued: those that are taken over, and those that ended before. In order; ranges do not touch. */
function leftOut({ reused = [], endedAhead }: Left): readonly (readonly [number, number])[] {
  return endedAhead === undefined ? reused : merged([...reused, ...rangesOf(endedAhead)]);
}

/** The first iteration from `index` on that is to run. */
export function nextToRun(loop: Left, index: number): number {
  if (loop.reused === undefined && loop.endedAhead === undefined) return index;
  return leftOut(loop).find(([from, to]) => index >= from && index < to)?.[1] ?? index;
}

/** True for an iteration whose result was taken over. */
export function isReused({ reused = [] }: Left, index: number): boolean {
  return reused.some(([from, to]) => index >= from && index < to);
}

/** How many iterations from `index` on are to run before one that is not; `to` is the end of all. */
export function runLength(loop: Left, index: number, to: number): number {
  const next = leftOut(loop).find(([from]) => from >= index);
  return Math.min(next?.[0] ?? to, to) - index;
}

/** How many iterations from `index` up to `to` are to run. */
export function countLeft(loop: Left, index: number, to: number): number {
  let left = to - index;
  for (const [from, end] of leftOut(loop)) left -= Math.max(0, Math.min(end, to) - Math.max(from, index));
  return Math.max(0, left);
}

/** Numbers as ranges without their ends, in order. */
export function rangesOf(numbers: readonly number[]): [from: number, to: number][] {
  return merged([...numbers].sort((left, right) => left - right).map((number) => [number, number + 1]));
}

function merged(ranges: readonly (readonly [number, number])[]): [from: number, to: number][] {
  const all: [number, number][] = [];
  for (const [from, to] of [...ranges].sort(([left], [right]) => left - right)) {
    const last = all.at(-1);
    if (last !== undefined && from <= last[1]) last[1] = Math.max(last[1], to);
    else all.push([from, to]);
  }
  return all;
}
