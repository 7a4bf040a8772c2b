import type { WorkServer } from "../../ports/work-server.ts";
import { defined } from "../../schema/words/defined.ts";
import { createReporter } from "../reporting/reporter.ts";
import { createSlots } from "../slots.ts";
import { runClaimLoop } from "./claim-loop.ts";
import { createRunningCommands, type RunningCommandsDeps, type TrackedCommand } from "./running-commands.ts";

/** What a worker is made of. */
export interface WorkerParts extends Omit<RunningCommandsDeps, "slots" | "open"> {
  server: WorkServer;
  /** Commands at a time. */
  capacity: number;
  /** A fresh idempotency key. */
  newKey(): string;
  /** The heartbeat is to be sent now: commands may have been lost on their way here. */
  beat(): void;
  /** The server does not know this worker: it is to register again. */
  register(): void;
}

/** A worker at work. */
export interface Worker {
  /** Begins to claim. */
  start(): void;
  /** Gives up a command whose claim is lost, if it still runs under this attempt. */
  lost(commandId: string, attempt: number): void;
  /** Stops a command that was cancelled. */
  cancelled(commandId: string): void;
  /** Stops iterations that were ended by hand; their command goes on without them. */
  iterationsCancelled(commandId: string, iterations: readonly number[]): void;
  /** Another process has this worker's name: abandons all running commands, and claims and reports nothing more. */
  replaced(): void;
  /** Slots that are taken. */
  taken(): number;
  /**
   * Claims no more and resolves when everything that runs has ended and been reported, or when the signal aborts. What still
   * runs then is abandoned without a report: another worker gets it when the lease ends. Returns the number of abandoned
   * commands.
   */
  drain(signal: AbortSignal): Promise<number>;
}

/** Builds a worker. It holds nothing but what runs; `drain` ends it. */
export function createWorker(parts: WorkerParts): Worker {
  const { clock, random } = parts.deps;
  const slots = createSlots(parts.capacity);
  const claiming = new AbortController();
  let claimed: Promise<void> = Promise.resolve();
  const running = createRunningCommands({ ...parts, slots, open: (claim) => reporter.open(claim) });
  const { start } = running;
  const reporter = createReporter<TrackedCommand>({
    ...parts,
    clock,
    random,
    slots,
    start,
    freedBy: running.freedBy,
    acknowledged: running.acknowledged,
    giveUp: (claim, why) => claim.giveUp(why),
    answerLost: () => parts.beat(),
    upload: (claim, { ref, payload, ttl, compression }) =>
      parts.resultsOf(claim).save(ref, payload, defined({ ttl, compression })),
  });
  return {
    start() {
      const unknown = () => parts.register();
      claimed = runClaimLoop({ ...parts, clock, random, slots, start, unknown }, claiming.signal);
    },
    lost(commandId, attempt) {
      const claim = running.find(commandId);
      if (claim?.work.attempt === attempt) claim.giveUp("its claim was lost");
    },
    cancelled: (commandId) => running.find(commandId)?.giveUp("it was cancelled"),
    iterationsCancelled: (commandId, iterations) => running.find(commandId)?.stops.stop(iterations),
    replaced() {
      claiming.abort(new Error("The worker was replaced"));
      reporter.claimNoMore();
      reporter.stop();
      for (const claim of running.all()) claim.giveUp("another process has this worker's name");
    },
    taken: () => slots.taken(),
    async drain(signal) {
      claiming.abort(new Error("The worker stops"));
      reporter.claimNoMore();
      const isOver = aborted(signal);
      await Promise.race([claimed, isOver]);
      // Again: what an answer under way brings begins after the commands that it acknowledges have ended.
      while (running.all().length > 0 && !signal.aborted) await Promise.race([running.untilNone(), isOver]);
      const left = running.all();
      reporter.stop();
      for (const claim of left) claim.giveUp("the worker stops");
      return left.length;
    },
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
