import type { Command } from "../../schema/words/command.ts";
import type { FlowEvent } from "../../schema/words/event.ts";
import type { EngineEnv } from "../env.ts";
import type { ProgramStep } from "../program/program.ts";
import { rowsLeft } from "../state/cursor-frames.ts";
import type { CursorState, ExecutionState, LoopState, StepRun } from "../state/state.ts";
import { issueClaim, issueIterations } from "./loop-commands.ts";

/*
 * Loops over rows that a statement claims (language document, section 6). A frame is the rows of one claim. Its rows become
 * iterations, and when the last of them has ended, its place is free for the next claim. Several frames at a time
 * (`max_in_flight`) are claimed by several workers at once; each works on `row_concurrency` of its own rows at a time. A claim
 * that returns no rows or fails ends the claiming; the loop ends when every frame has ended.
 */

/** Most open iterations of one cursor loop, over all frames: as for any other loop. */
const OPEN_ROWS_MAX = 1_000;

/** True while rows may still be issued or claimed. */
export function hasMoreRows(cursor: CursorState): boolean {
  return !cursor.exhausted || cursor.frames.some((frame) => rowsLeft(frame) > 0);
}

/** Issues the rows that may be worked on now, and claims for the free frames. */
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
    const left = rowsLeft(frame);
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
