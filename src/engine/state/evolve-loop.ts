import type { EventOf, Overridden } from "../../schema/words/event.ts";
import { jsonSize } from "../../schema/words/json.ts";
import type { TaskError } from "../../schema/words/outcome.ts";
import type { LoopResult, StoredResult } from "../../schema/words/result.ts";
import { claimEnded, freshCursor, rowEnded, rowsIssued } from "./cursor-frames.ts";
import { adoptKept, checkedPart, nextToRun } from "./kept-iterations.ts";
import { joinTasks, withRuns } from "./results.ts";
import {
  type ExecutionState,
  type LoopCounters,
  type LoopState,
  type OpenCommand,
  openCommand,
  stepState,
} from "./state.ts";

type LoopEvent =
  | EventOf<"loop.started">
  | EventOf<"command.issued">
  | EventOf<"loop.iteration.completed">
  | EventOf<"loop.iteration.failed">
  | EventOf<"loop.results.stored">
  | EventOf<"loop.results.kept">
  | EventOf<"loop.done">
  | EventOf<"command.completed">
  | EventOf<"command.failed">;

/**
 * The part of `evolve` that concerns loops. Every event costs the same however many iterations there are: counters move,
 * the ended iteration's result joins the tail, and the tail leaves for the store when it is full.
 *
 * @param ended the command that a `command.completed` or `command.failed` has just closed.
 */
export function evolveLoop(state: ExecutionState, event: LoopEvent, ended?: OpenCommand): ExecutionState {
  const step = stepState(state, event.step);
  if (step.run === null) return state;
  if (event.type === "loop.started") {
    const begun = started(event);
    step.run.loop = begun;
    if (step.kept !== undefined) adoptKept(begun, step);
    step.loop = { total: begun.total, done: begun.success, failed: 0 };
    return state;
  }
  const loop = step.run.loop;
  if (loop === null) return state;
  switch (event.type) {
    case "command.issued":
      issued(loop, event);
      break;
    case "loop.iteration.completed":
    case "loop.iteration.failed":
      iterationEnded(state, loop, event);
      break;
    case "loop.results.stored":
      loop.parts.push(event.part);
      loop.tail = [];
      loop.tailBytes = 0;
      break;
    case "loop.results.kept":
      checkedPart(loop, step, event);
      break;
    case "loop.done":
      loop.done = true;
      if (event.manifest !== undefined) loop.manifest = event.manifest;
      break;
    case "command.completed":
    case "command.failed":
      if (ended !== undefined) commandEnded(loop, event, ended);
      break;
  }
  step.loop = countersOf(loop);
  return state;
}

/** The counters of a loop, as shown to people. */
export function countersOf(loop: LoopState): LoopCounters {
  return { total: loop.total, done: endedCount(loop), failed: loop.failed };
}

/** Iterations that have ended: successfully, failed, or skipped by a person. */
export function endedCount({ success, failed, skipped = 0 }: LoopState): number {
  return success + failed + skipped;
}

function started(event: EventOf<"loop.started">): LoopState {
  const isCursor = event.max_rows !== undefined;
  return {
    items: event.items ?? null,
    total: isCursor ? null : (event.items?.length ?? event.count ?? 0),
    maxInFlight: event.max_in_flight,
    next: 0,
    open: 0,
    commands: 0,
    success: 0,
    failed: 0,
    firstError: null,
    unrun: 0,
    tail: [],
    tailBytes: 0,
    parts: [],
    ...(event.accumulate !== undefined && { accumulate: event.accumulate }),
    cursor: isCursor ? freshCursor(event.max_rows ?? 1, event.max_frames ?? 1, event.frame_ms ?? null) : null,
    done: false,
  };
}

function issued(loop: LoopState, event: EventOf<"command.issued">): void {
  loop.commands += 1;
  if (event.iterations !== undefined) {
    const { from, to } = event.iterations;
    loop.next += to - from;
    loop.open += to - from;
    if (loop.cursor !== null) rowsIssued(loop.cursor, from, to);
    else passEndedAhead(loop);
  } else if (loop.cursor !== null) {
    loop.cursor.claims += 1;
  }
}

/** Iterations that ended before they were issued are not issued, nor those that are taken over. */
function passEndedAhead(loop: LoopState): void {
  loop.next = nextToRun(loop, loop.next);
  const ahead = loop.endedAhead?.filter((index) => index > loop.next);
  if (ahead === undefined || ahead.length === 0) delete loop.endedAhead;
  else loop.endedAhead = ahead;
}

function iterationEnded(
  state: ExecutionState,
  loop: LoopState,
  event: EventOf<"loop.iteration.completed"> | EventOf<"loop.iteration.failed">,
): void {
  const command = openCommand(state, event.command_id);
  if (command === undefined || command.iterations === null) return;
  const values = withRuns(command.values[event.iteration] ?? [], event.results);
  delete command.values[event.iteration];
  delete command.retries?.[event.iteration];
  markEnded(command.iterations, event.iteration);
  const isFailed = event.type === "loop.iteration.failed";
  const result = isFailed
    ? failedIteration(loop, event.error)
    : joinTasks(event.tasks, values, event.pipeline === true);
  count(loop, event.iteration, result ?? { value: null }, isFailed ? event.error : null);
  loop.tailBytes += isFailed ? FAILURE_BYTES : values.reduce((sum, [, , bytes]) => sum + bytes, ENTRY_BYTES);
}

/** Approximate bytes of JSON for an entry of the tail beside its result, and for a failure. */
const ENTRY_BYTES = 16;
const FAILURE_BYTES = 512;

function count(loop: LoopState, iteration: number, result: StoredResult, error: TaskError | null): void {
  leaveOpen(loop, iteration);
  tally(loop, iteration, result, error);
}

function tally(loop: LoopState, iteration: number, result: StoredResult, error: TaskError | null): void {
  if (error === null) {
    loop.success += 1;
  } else {
    loop.failed += 1;
    loop.firstError ??= error;
  }
  loop.tail.push([iteration, result]);
}

function leaveOpen(loop: LoopState, iteration: number): void {
  loop.open -= 1;
  if (loop.cursor !== null) rowEnded(loop.cursor, iteration);
}

function failedIteration(loop: LoopState, error: TaskError): StoredResult {
  const value = { status: "error", error };
  return loop.accumulate === undefined ? { value } : { value, failed: true };
}

/** Remembers an ended iteration. The list holds only the iterations that overtook a slower one. */
function markEnded(iterations: NonNullable<OpenCommand["iterations"]>, index: number): void {
  iterations.endedAbove.push(index);
  for (;;) {
    const next = iterations.endedAbove.indexOf(iterations.endedBelow);
    if (next < 0) return;
    iterations.endedAbove.splice(next, 1);
    iterations.endedBelow += 1;
  }
}

/** True when this iteration of the command was reported before. */
export function hasEnded(iterations: NonNullable<OpenCommand["iterations"]>, index: number): boolean {
  return index < iterations.endedBelow || iterations.endedAbove.includes(index);
}

/** A command was cancelled: its iterations have ended before, or its loop ends with it. */
export function loopCommandCancelled(loop: LoopState, command: OpenCommand): void {
  loop.commands -= 1;
  if (command.claim && loop.cursor !== null) loop.cursor.claims -= 1;
}

/** Ends an iteration as a person said. `command`: the one that it is open in; undefined: it was not issued. */
export function overrideIteration(
  loop: LoopState,
  iteration: number,
  { action, result, error }: Overridden,
  command: OpenCommand | undefined,
): void {
  if (command?.iterations != null) {
    delete command.values[iteration];
    delete command.retries?.[iteration];
    markEnded(command.iterations, iteration);
    command.iterations.overridden = inOrder(command.iterations.overridden, iteration);
    leaveOpen(loop, iteration);
  } else {
    loop.endedAhead = inOrder(loop.endedAhead, iteration);
    passEndedAhead(loop);
  }
  if (action === "skip") {
    loop.skipped = (loop.skipped ?? 0) + 1;
    // The list of results keeps its order: what was skipped is null in it, and no part of what results are merged to.
    loop.tail.push([iteration, { value: null, ...(loop.accumulate !== undefined && { failed: true }) }]);
  } else if (action === "fail" && error !== undefined) {
    tally(loop, iteration, failedIteration(loop, error), error);
    loop.tailBytes += FAILURE_BYTES;
  } else {
    tally(loop, iteration, result ?? { value: null }, null);
    loop.tailBytes += jsonSize(result?.value ?? null);
  }
  loop.tailBytes += ENTRY_BYTES;
}

function inOrder(indexes: readonly number[] = [], index: number): number[] {
  return [...indexes, index].sort((left, right) => left - right);
}

/** A claim returns rows or ends the claiming; a failed command fails the iterations that it had not reported. */
function commandEnded(
  loop: LoopState,
  event: EventOf<"command.completed"> | EventOf<"command.failed">,
  command: OpenCommand,
): void {
  loop.commands -= 1;
  if (command.claim && loop.cursor !== null) {
    const [rows, error] = event.type === "command.failed" ? [[], event.error] : [event.rows ?? [], null];
    claimEnded(loop.cursor, rows, error, event.at);
    if (loop.cursor.exhausted && loop.cursor.claims === 0) loop.total = loop.cursor.rows;
    return;
  }
  if (command.iterations === null) return;
  const { from, to } = command.iterations;
  for (let index = from; index < to; index += 1) {
    if (hasEnded(command.iterations, index)) continue;
    if (event.type === "command.failed") {
      count(loop, index, failedIteration(loop, event.error), event.error);
    } else {
      leaveOpen(loop, index);
      loop.unrun += 1;
    }
  }
}

/** The result of a step with a loop. */
export function loopResult(loop: LoopState, status: LoopResult["status"]): StoredResult {
  const { parts, manifest, accumulate } = loop;
  return {
    loop: {
      status,
      stats: loopStats(loop),
      tail: [...loop.tail].sort(([left], [right]) => left - right),
      parts,
      ...(manifest !== undefined && { manifest }),
      ...(accumulate !== undefined && { accumulate }),
    },
  };
}

/** Counters of `stats`: iterations in total, succeeded, and failed. */
export function loopStats(loop: LoopState): { total: number; success: number; failed: number } {
  return { total: loop.total ?? loop.next, success: loop.success, failed: loop.failed };
}
