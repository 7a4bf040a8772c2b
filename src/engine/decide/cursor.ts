import type { Command } from "../../schema/words/command.ts";
import type { FlowEvent } from "../../schema/words/event.ts";
import type { Json } from "../../schema/words/json.ts";
import type { TaskError } from "../../schema/words/outcome.ts";
import type { EngineEnv } from "../env.ts";
import type { ProgramStep } from "../program/program.ts";
import type { CursorState, ExecutionState, Frame, LoopState, StepRun } from "../state/state.ts";
import { issueClaim, issueIterations } from "./loop-commands.ts";

/*
 * Loops over rows that a statement claims (language document, section 6). A frame is the rows of one claim: it is asked for,
 * its rows become iterations, and when the last of them has ended its place is free for the next claim. Several frames at a
 * time (`max_in_flight`) are claimed by several workers at once; each works through its own `row_concurrency` rows at a time.
 * A claim that gives nothing, or fails, is the end of claiming; the loop is over when every frame is.
 */

/** Iterations of one cursor loop that may be open at a time, over all frames: as for any other loop. */
const OPEN_ROWS_MAX = 1_000;

/** True while rows may still be issued or claimed. */
export function hasMoreRows(cursor: CursorState): boolean {
  return !cursor.exhausted || cursor.frames.some((frame) => leftIn(frame) > 0);
}

/** The rows that may be worked on now, and the claims for the frames that are free. */
export function continueCursor(
  state: ExecutionState,
  step: ProgramStep,
  run: StepRun,
  loop: LoopState,
  cursor: CursorState,
  env: EngineEnv,
): { events: FlowEvent[]; commands: Command[] } {
  const events: FlowEvent[] = [];
  const commands: Command[] = [];
  let open = loop.open;
  for (const frame of cursor.frames) {
    const left = leftIn(frame);
    if (left === 0 || open >= OPEN_ROWS_MAX) continue;
    const issued = issueIterations(
      state,
      step,
      run,
      loop,
      {
        next: frame.next,
        left,
        open: frame.open,
        openMax: Math.min(loop.maxInFlight, frame.open + OPEN_ROWS_MAX - open),
        items: (from, to) => frame.items.slice(from - frame.from, to - frame.from),
        ...(cursor.frameMs !== null && { endsAt: frame.at + cursor.frameMs }),
      },
      env,
    );
    open += issued.commands.length;
    events.push(...issued.events);
    commands.push(...issued.commands);
  }
  if (cursor.exhausted) return { events, commands };
  for (let taken = cursor.frames.length + cursor.claims; taken < cursor.maxFrames; taken += 1) {
    const { event, command } = issueClaim(state, step, run, cursor.maxRows, env);
    events.push(event);
    commands.push(command);
  }
  return { events, commands };
}

function leftIn({ from, items, next }: Frame): number {
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

/** A row has ended, well or not; with the last one its frame leaves the state. */
export function rowEnded(cursor: CursorState, index: number): void {
  const frame = frameOf(cursor, index);
  if (frame === undefined) return;
  frame.open -= 1;
  if (frame.open === 0 && leftIn(frame) === 0) cursor.frames.splice(cursor.frames.indexOf(frame), 1);
}

/** A claim has ended: with rows, which are a new frame, with none, or with an error. */
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

/** The frame of a row. There are few: a search through the list costs less than a table of them. */
function frameOf(cursor: CursorState, index: number): Frame | undefined {
  return cursor.frames.find(({ from, items }) => index >= from && index < from + items.length);
}
