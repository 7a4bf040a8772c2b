import type { Json } from "../../schema/words/json.ts";
import type { TaskError } from "../../schema/words/outcome.ts";
import type { CursorState, Frame } from "./state.ts";

/*
 * How events change the state of a cursor loop. `decide/cursor` decides what follows from them.
 */

/** Rows of a frame that were not issued yet. */
export function rowsLeft({ from, items, next }: Frame): number {
  return from + items.length - next;
}

/** A cursor before its first claim. */
export function freshCursor(maxRows: number, maxFrames: number, frameMs: number | null): CursorState {
  return { maxRows, maxFrames, frameMs, claims: 0, rows: 0, frames: [], exhausted: false, error: null };
}

/** Rows of a frame were issued. Changes the state in place, as `evolve` does. */
export function rowsIssued(cursor: CursorState, from: number, to: number): void {
  const frame = frameOf(cursor, from);
  if (frame === undefined) return;
  frame.next = to;
  frame.open += to - from;
}

/** A row has ended, successfully or not; with the last one its frame leaves the state. */
export function rowEnded(cursor: CursorState, index: number): void {
  const frame = frameOf(cursor, index);
  if (frame === undefined) return;
  frame.open -= 1;
  if (frame.open === 0 && rowsLeft(frame) === 0) cursor.frames.splice(cursor.frames.indexOf(frame), 1);
}

/** A claim has ended: with rows, which become a new frame; without rows; or with an error. */
export function claimEnded(cursor: CursorState, rows: Json[], error: TaskError | null, at: number): void {
  cursor.claims -= 1;
  cursor.error ??= error;
  if (rows.length === 0) {
    cursor.exhausted = true;
    return;
  }
  cursor.frames.push({ from: cursor.rows, items: rows, next: cursor.rows, open: 0, at });
  cursor.rows += rows.length;
}

/** The frame of a row. There are only a few: searching the list costs less than maintaining a table. */
function frameOf(cursor: CursorState, index: number): Frame | undefined {
  return cursor.frames.find(({ from, items }) => index >= from && index < from + items.length);
}
