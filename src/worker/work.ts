import type { ClaimedWork, WorkServer } from "../ports/work-server.ts";
import { claimForever } from "./claiming.ts";
import type { Report } from "./deps.ts";
import type { Happening } from "./happening.ts";
import { createReporter } from "./reporter.ts";
import { type RunParts, runClaim } from "./run-claim.ts";
import { createRunningClaim, type RunningClaim } from "./running-claim.ts";
import { createSlots } from "./slots.ts";

/** What a worker is made of. */
export interface WorkParts extends RunParts {
  server: WorkServer;
  /** Commands at a time. */
  capacity: number;
  /** A controller whose signal may have any number of listeners. */
  newAbort(): AbortController;
  newKey(): string;
  /** Where it is written down what runs, for the heartbeat. */
  ledger: { add(work: ClaimedWork): number; remove(row: number): void };
  /** The heartbeat is to be sent now: commands may have been lost on their way here. */
  beat(): void;
  /** The server does not know this worker: it is to register again. */
  register(): void;
  tell(happening: Happening): void;
}

/** A worker at work. */
export interface Work {
  /** Begins to claim. */
  start(): void;
  /** Gives up a command whose claim is lost, if it still runs under this attempt. */
  lost(commandId: string, attempt: number): void;
  /** Stops a command that was cancelled. */
  cancelled(commandId: string): void;
  /** Slots that are taken. */
  taken(): number;
  /**
   * Claims nothing more and resolves when all that runs has ended and was reported, or when the signal aborts; what runs
   * then is given up without a report: another worker has it when the lease ends. Gives how many these were.
   */
  drain(signal: AbortSignal): Promise<number>;
}

/** Builds a worker. It holds nothing but what runs; `drain` ends it. */
export function createWork(parts: WorkParts): Work {
  const { deps, ledger, tell } = parts;
  const slots = createSlots(parts.capacity);
  const running = new Map<string, Running>();
  const claiming = new AbortController();
  let whenIdle = () => {};

  const end = (claim: Running, outcome: "reported" | "given up") => {
    if (claim.isOver) return;
    claim.isOver = true;
    ledger.remove(claim.row);
    const id = claim.work.command.command_id;
    if (running.get(id) === claim) running.delete(id);
    if (claim.children === 0) slots.giveBack();
    tell({ type: "command.ended", work: claim.work, durationMs: deps.clock.now() - claim.startedAt, outcome });
    if (running.size === 0) whenIdle();
  };

  const begin = (work: ClaimedWork) => {
    const id = work.command.command_id;
    // Claimed anew while the older claim still runs here: that one is lost.
    running.get(id)?.giveUp("it was claimed again");
    const onGiveUp = (why: string) => {
      to.drop();
      tell({ type: "claim.given_up", work, why });
      if (claim.isDone) end(claim, "given up");
    };
    const base = createRunningClaim({ work, startedAt: deps.clock.now(), controller: parts.newAbort(), onGiveUp });
    const claim: Running = { ...base, row: ledger.add(work), children: 0, isDone: false, isOver: false };
    const to = reporter.open(claim);
    running.set(id, claim);
    slots.take();
    void run(claim, to.report);
  };

  const run = async (claim: Running, report: Report) => {
    try {
      await runClaim(parts, claim, report, (waits) => lend(claim, waits));
    } catch (error) {
      // A command without an end would hold its execution forever: its lease is to end, so that somebody runs it again.
      if (!claim.isGivenUp()) tell({ type: "fault", doing: "running a command", error });
      claim.giveUp("this worker failed to run it");
    }
    claim.isDone = true;
    // Of the others the server has not acknowledged the end yet.
    if (claim.isGivenUp()) end(claim, "given up");
  };

  /** While a command waits for sub-playbooks, its slot is free. */
  const lend = (claim: Running, waits: boolean) => {
    claim.children += waits ? 1 : -1;
    if (claim.isOver) return;
    if (waits && claim.children === 1) slots.giveBack();
    if (!waits && claim.children === 0) slots.take();
  };

  const start = (commands: ClaimedWork[]) => {
    for (const work of commands) begin(work);
  };
  const reporter = createReporter<Running>({
    ...parts,
    clock: deps.clock,
    random: () => deps.random(),
    slots,
    start,
    acknowledged: (claim) => end(claim, "reported"),
    giveUp: (claim, why) => claim.giveUp(why),
    answerLost: () => parts.beat(),
  });
  const idle = () =>
    new Promise<void>((resolve) => {
      whenIdle = resolve;
      if (running.size === 0) resolve();
    });

  return {
    start() {
      const { clock } = deps;
      void claimForever(
        { ...parts, clock, random: () => deps.random(), slots, start, unknown: () => parts.register() },
        claiming.signal,
      );
    },
    lost(commandId, attempt) {
      const claim = running.get(commandId);
      if (claim?.work.attempt === attempt) claim.giveUp("its claim was lost");
    },
    cancelled: (commandId) => running.get(commandId)?.giveUp("it was cancelled"),
    taken: () => slots.taken(),
    async drain(signal) {
      claiming.abort(new Error("The worker stops"));
      reporter.claimNoMore();
      const isOver = aborted(signal);
      // Again: what an answer under way brings begins after the commands that it acknowledges have ended.
      while (running.size > 0 && !signal.aborted) await Promise.race([idle(), isOver]);
      const left = running.size;
      reporter.stop();
      for (const claim of [...running.values()]) claim.giveUp("the worker stops");
      return left;
    },
  };
}

/** {@link RunningClaim}, with what only its owner knows. */
interface Running extends RunningClaim {
  readonly row: number;
  /** Sub-playbooks that it waits for. */
  children: number;
  /** Nothing of it runs here any more. */
  isDone: boolean;
  /** Its slot is free again. */
  isOver: boolean;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
