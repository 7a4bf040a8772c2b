import { type Acceptance, accept } from "../../engine/state/accept.ts";
import { isUnclaimed } from "../../engine/state/evolve-wait.ts";
import { openCommand } from "../../engine/state/state.ts";
import type { ExecutionStart, IssuedCommand } from "../../ports/execution-store.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import type { FlowEvent } from "../../schema/words/event.ts";
import type { TaskError } from "../../schema/words/outcome.ts";
import { unknownExecution } from "../errors.ts";
import type { LiveExecution, UndecidedEvent } from "./memory/load-execution.ts";
import type { OrchestratorParts } from "./parts.ts";
import type { RoundLoop } from "./round-loop.ts";
import { applyEvent, applyUndecided, foldOnly } from "./rounds/apply-event.ts";
import type { Committed, Job, Round } from "./rounds/round.ts";

/** Queues a job and waits until it is durable. Rejects with the error of its refusal. */
export function runJob(
  roundLoop: Pick<RoundLoop, "push">,
  executionIds: string[],
  make: (base: Omit<Job, "check" | "apply">) => Job,
): Promise<Committed> {
  return new Promise((resolve, reject) => {
    roundLoop.push(make(jobBase(executionIds, { settle: resolve, fail: reject })));
  });
}

/**
 * The queue for jobs that a caller waits for. A job that no round has begun within `ackMs` is refused, and then not run; one that has
 * begun may still be written when its caller is told, after `processingMs`, that it took too long.
 */
export function withTimeLimits({
  roundLoop,
  deadlines,
  limits,
}: Pick<OrchestratorParts, "roundLoop" | "deadlines" | "limits">): Pick<RoundLoop, "push"> {
  return {
    push(job) {
      let hasBegun = false;
      let isOver = false;
      const end = () => {
        isOver = true;
        for (const cancel of cancels) cancel();
      };
      const limit = (ms: number, isDue: () => boolean, message: string) =>
        deadlines.add(ms, () => {
          if (isOver || !isDue()) return;
          end();
          job.fail(new FlowError("UNAVAILABLE", message));
        });
      const cancels = [
        limit(limits.ackMs, () => !hasBegun, notBegun(limits.ackMs)),
        limit(limits.processingMs, () => true, notWritten(limits.processingMs)),
      ];
      roundLoop.push({
        ...job,
        isAbandoned: () => isOver && !hasBegun,
        check(round) {
          hasBegun = true;
          job.check(round);
        },
        settle(committed) {
          end();
          job.settle(committed);
        },
        fail(error) {
          end();
          job.fail(error);
        },
      });
    },
  };
}

function notBegun(ms: number): string {
  return `The server did not get to this within ${ms / 1_000} s, and dropped it. Send it again`;
}

function notWritten(ms: number): string {
  const next = "It may still be done. Send it again under its idempotency key, or look whether it was";
  return `This was not written within ${ms / 1_000} s. ${next}`;
}

/** Folds one external event into an execution, decides what follows, and returns the judgement of the event. */
export async function inject(
  roundLoop: Pick<RoundLoop, "push">,
  executionId: string,
  event: FlowEvent,
): Promise<Acceptance> {
  let verdict: Acceptance = "late";
  const told = (judged: Acceptance) => {
    verdict = judged;
  };
  try {
    await runJob(roundLoop, [executionId], (base) => injectJob(event, base, told));
  } catch (error) {
    if (!(error instanceof NothingToSteer)) throw error;
    return error.verdict;
  }
  return verdict;
}

/** A pause of what is paused already, a resumption of what is not, either after the end: refused only by a state that was just loaded. */
class NothingToSteer extends FlowError {
  readonly verdict: Acceptance;

  constructor(verdict: Acceptance) {
    super("CONFLICT", "The execution was paused, resumed or ended meanwhile");
    this.verdict = verdict;
  }
}

/**
 * Ends an execution as failed because this program fails while it decides what follows from `what`: the execution would never
 * continue. Never rejects: if that cannot be written either, it is reported as a fault.
 */
export async function failExecution(
  { roundLoop, now, observer }: Pick<OrchestratorParts, "roundLoop" | "now" | "observer">,
  executionId: string,
  what: string,
  cause: unknown,
  code: "INTERNAL" | "POISONED" = "INTERNAL",
): Promise<void> {
  const message = `The execution was ended: what follows from ${what} could not be worked out. ${messageOf(cause)}`;
  const error: TaskError = { kind: "unknown", code, message, retryable: false };
  const event: FlowEvent = { type: "workflow.failed", at: now(), error };
  try {
    await inject(roundLoop, executionId, event);
  } catch (fault) {
    observer.fault(fault, [executionId]);
  }
}

/** The ends of a job that no caller waits for. */
export const NO_CALLER = { settle: () => undefined, fail: () => undefined };

/** The fields common to all jobs; `settle` and `fail` resolve and reject a promise. */
export function jobBase(
  executionIds: string[],
  ends: { settle(committed: Committed): void; fail(error: unknown): void },
): Omit<Job, "check" | "apply"> {
  return {
    executionIds,
    alone: false,
    isVerified: false,
    isAbandoned: () => false,
    settle: ends.settle,
    fail: ends.fail,
    // Works on one execution, or on each by itself: a part that was written is not run again.
    keepRest(moved) {
      this.executionIds = this.executionIds.filter((id) => !moved.has(id));
    },
  };
}

/**
 * A start that had to be of the newest version was not written: a newer one may be there, or the store was busy. It is to be decided
 * again, on a version that has been looked up.
 */
export class NotNewest extends FlowError {
  constructor(path: string) {
    super("CONFLICT", `'${path}' was not started: a newer version was registered meanwhile. Start it again`);
  }
}

/** Begins an execution: its first events, and what follows. `fresh` returns its state before that event, new for each try. */
export function startJob(
  first: readonly FlowEvent[],
  start: ExecutionStart,
  fresh: () => LiveExecution,
  base: Omit<Job, "check" | "apply">,
): Job {
  let isLeftOut = false;
  return {
    ...base,
    // The store wrote the others and not this one. After an error nothing is known, and it is tried again as it is.
    keepRest() {
      isLeftOut = true;
    },
    check(round) {
      if (!isLeftOut || changesOf(round, base) !== undefined) return;
      if (start.mustBeNewest === true) throw new NotNewest(start.path);
      if (start.line?.rerun_of !== undefined) throw originalGone(start.line.rerun_of);
    },
    async apply(round) {
      // No other caller has this id: an earlier try was written, and its answer was lost.
      if (changesOf(round, base) !== undefined) return;
      const changes = round.begin(fresh(), start);
      // Those of a rerun are folded first: what follows is decided of the whole.
      foldOnly(changes, first);
      await applyUndecided(changes, round.applyDeps);
    },
  };
}

/** A rerun is written only while its original is there: what others refer to outlives its deletion. */
function originalGone(executionId: string): FlowError {
  return new FlowError("NOT_FOUND", `Execution ${executionId}, which is to be run again, is being deleted`);
}

/** Folds one external event, if it is acceptable, and decides what follows. `told` receives the judgement. */
function injectJob(event: FlowEvent, base: Omit<Job, "check" | "apply">, told: (verdict: Acceptance) => void): Job {
  return {
    ...base,
    check(round) {
      const changes = changesOf(round, base);
      if (changes === undefined) throw unknownExecution(base.executionIds[0] ?? "");
      if (event.type !== "execution.paused" && event.type !== "execution.resumed") return;
      const verdict = accept(changes.live.state, event);
      if (verdict !== "accepted") throw new NothingToSteer(verdict);
    },
    async apply(round) {
      const changes = changesOf(round, base);
      if (changes === undefined) return;
      await applyUndecided(changes, round.applyDeps);
      const verdict = accept(changes.live.state, event);
      told(verdict);
      if (verdict === "accepted") await applyEvent(changes, event, round.applyDeps);
    },
  };
}

/**
 * Decides what follows from events that were only accepted so far, and marks the batch that brought them. `undecided` returns
 * the events for a state that was loaded since: it contains them, but not that their consequences are still undecided. A state
 * without `lastEventId`, the last of them, is older than the batch: nothing would follow from it, so it is not used.
 */
export function processBatchJob(
  requestId: string,
  base: Omit<Job, "check" | "apply">,
  undecided: (executionId: string, live: LiveExecution) => UndecidedEvent[],
  lastEventId: (executionId: string) => number = () => 0,
): Job & { commandsGenerated: number } {
  const job = {
    ...base,
    commandsGenerated: 0,
    check(round: Round) {
      for (const executionId of job.executionIds) {
        const live = round.changes(executionId)?.live;
        if (live === undefined || live.lastEventId >= lastEventId(executionId)) continue;
        throw new FlowError("UNAVAILABLE", `Execution ${executionId} is not known up to its batch ${requestId}`);
      }
    },
    async apply(round: Round) {
      job.commandsGenerated = 0;
      for (const executionId of job.executionIds) {
        const changes = round.changes(executionId);
        if (changes === undefined) continue;
        changes.live.undecided = [...undecided(executionId, changes.live), ...changes.live.undecided];
        job.commandsGenerated += await applyUndecided(changes, round.applyDeps);
      }
      const { commandsGenerated, executionIds } = job;
      round.batch({ requestId, state: "completed", commandsGenerated, executionIds });
    },
  };
  return job;
}

/**
 * Goes on with the steps without effects that a round has held. No caller waits for it: if it fails, the next poll finds its
 * commands in the store, for workers.
 */
export function heldStepsJob(executionId: string, commands: readonly IssuedCommand[]): Job {
  return {
    ...jobBase([executionId], NO_CALLER),
    mayWait: true,
    check: () => undefined,
    async apply(round) {
      const changes = round.changes(executionId);
      if (changes === undefined) return;
      await applyUndecided(changes, round.applyDeps);
      const { state } = changes.live;
      // Their rows say so: they are taken up by the resumption.
      if (state.status === "PAUSED") return;
      // Another server's worker may have been faster, or the execution has been stopped.
      for (const command of commands) {
        const open = openCommand(state, command.commandId);
        if (open !== undefined && isUnclaimed(open)) changes.adopt(command);
      }
    },
  };
}

/** Records that a batch has failed, and why. Its events stay in the log. */
export function failBatchJob(
  batch: { requestId: string; code: string; message: string },
  base: Omit<Job, "check" | "apply">,
): Job {
  return {
    ...base,
    check: () => undefined,
    async apply(round) {
      round.batch({ ...batch, state: "failed", commandsGenerated: 0, executionIds: [] });
    },
  };
}

/** Writes the markers that wait at an execution. */
export function markerJob(base: Omit<Job, "check" | "apply">): Job {
  return {
    ...base,
    check: () => undefined,
    async apply(round) {
      // Opening its change set adds the waiting markers.
      for (const executionId of base.executionIds) round.changes(executionId);
    },
  };
}

function changesOf(round: Round, { executionIds }: { executionIds: string[] }) {
  return round.changes(executionIds[0] ?? "");
}
