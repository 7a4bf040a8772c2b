import type { ClaimedWork } from "../../ports/work-server.ts";
import { iterationSlots, iterationsLeft } from "../../schema/rules/iteration-slots.ts";
import type { Report } from "../deps.ts";
import type { Ended } from "../reporting/deliver.ts";
import type { Slots } from "../slots.ts";
import type { WorkerEvent } from "../worker-event.ts";
import { type RunClaimedCommandDeps, runClaimedCommand } from "./run-claimed-command.ts";
import { createRunningCommand, type RunningCommand } from "./running-command.ts";

/** {@link RunningCommand}, with what only the table of them looks at. */
export interface TrackedCommand extends RunningCommand {
  readonly row: number;
  /** What it still has of the worker's slots. */
  slots: number;
  /** Iterations that are still to end, of those that begin at once; else 1. */
  left: number;
  /** Sub-playbooks that it waits for. */
  children: number;
  /** Nothing of it runs here any more. */
  isDone: boolean;
  /** Its slot is free again. */
  isOver: boolean;
}

/** What running claims are made of. */
export interface RunningCommandsDeps extends RunClaimedCommandDeps {
  slots: Slots;
  /** A controller whose signal may have any number of listeners. */
  newAbort(): AbortController;
  /** Where it is written down what runs, for the heartbeat. */
  runningTable: { add(work: ClaimedWork): number; remove(row: number): void };
  /** Where a command reports to; `drop` forgets what was not sent. */
  open(claim: TrackedCommand): { report: Report; drop(): void };
  emit(event: WorkerEvent): void;
}

/** The commands that this worker has. */
export interface RunningCommands {
  /** Runs commands that were claimed. */
  start(commands: readonly ClaimedWork[]): void;
  /** Slots that are free when the server has this of a command. */
  freedBy(claim: TrackedCommand, ended: Ended): number;
  /** The server has what this one reported: the slots of what has ended are free. */
  acknowledged(claim: TrackedCommand, ended: Ended): void;
  find(commandId: string): TrackedCommand | undefined;
  all(): TrackedCommand[];
  /** Resolves when none is running; new ones may start right after. */
  untilNone(): Promise<void>;
}

/** None yet. */
export function createRunningCommands(parts: RunningCommandsDeps): RunningCommands {
  const { deps, runningTable, slots, emit } = parts;
  const running = new Map<string, TrackedCommand>();
  let whenNone = () => {};

  const end = (claim: TrackedCommand, outcome: "reported" | "given up") => {
    if (claim.isOver) return;
    claim.isOver = true;
    runningTable.remove(claim.row);
    const id = claim.work.command.command_id;
    if (running.get(id) === claim) running.delete(id);
    if (claim.children === 0) slots.giveBack(claim.slots);
    emit({ type: "command.ended", work: claim.work, durationMs: deps.clock.now() - claim.startedAt, outcome });
    if (running.size === 0) whenNone();
  };

  const begin = (work: ClaimedWork) => {
    const id = work.command.command_id;
    // Claimed anew while the older claim still runs here: that one is lost.
    running.get(id)?.giveUp("it was claimed again");
    const onGiveUp = (why: string) => {
      to.drop();
      emit({ type: "claim.given_up", work, why });
      if (claim.isDone) end(claim, "given up");
    };
    const base = createRunningCommand({ work, startedAt: deps.clock.now(), newAbort: parts.newAbort, onGiveUp });
    const row = runningTable.add(work);
    const left = iterationsLeft(work.command.loop);
    const place = { row, left, slots: iterationSlots(left) };
    const claim: TrackedCommand = { ...base, ...place, children: 0, isDone: false, isOver: false };
    const to = parts.open(claim);
    running.set(id, claim);
    slots.take(claim.slots);
    void run(claim, to.report);
  };

  const run = async (claim: TrackedCommand, report: Report) => {
    try {
      await runClaimedCommand(parts, claim, report, (waits) => lend(claim, slots, waits));
    } catch (error) {
      // A command without an end would hold its execution forever: let its lease expire, so that another worker runs it.
      if (!claim.isGivenUp()) emit({ type: "fault", doing: "running a command", error, work: claim.work });
      claim.giveUp("this worker failed to run it");
    }
    claim.isDone = true;
    // Of the others the server has not acknowledged the end yet.
    if (claim.isGivenUp()) end(claim, "given up");
  };

  return {
    start(commands) {
      for (const work of commands) begin(work);
    },
    freedBy,
    acknowledged(claim, ended) {
      if (ended.isEnd) end(claim, "reported");
      else if (!claim.isOver) shrink(claim, slots, ended);
    },
    find: (commandId) => running.get(commandId),
    all: () => [...running.values()],
    untilNone: () =>
      new Promise((resolve) => {
        whenNone = resolve;
        if (running.size === 0) resolve();
      }),
  };
}

function freedBy({ slots, left }: TrackedCommand, { iterations, isEnd }: Ended): number {
  return isEnd ? slots : slots - iterationSlots(left - iterations);
}

/** Gives back the slots of the iterations that have ended. */
function shrink(claim: TrackedCommand, slots: Slots, ended: Ended): void {
  const freed = freedBy(claim, ended);
  claim.left -= ended.iterations;
  claim.slots -= freed;
  if (freed > 0) slots.giveBack(freed);
}

/** While a command waits for sub-playbooks, its slot is free. */
function lend(claim: TrackedCommand, slots: Slots, waits: boolean): void {
  claim.children += waits ? 1 : -1;
  if (claim.isOver) return;
  if (waits && claim.children === 1) slots.giveBack();
  if (!waits && claim.children === 0) slots.take();
}
