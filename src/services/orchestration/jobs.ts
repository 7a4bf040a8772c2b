import { type Acceptance, accept } from "../../engine/state/accept.ts";
import type { ExecutionStart } from "../../ports/execution-store.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { FlowEvent } from "../../schema/words/event.ts";
import { unknownExecution } from "../errors.ts";
import type { LiveExecution, UndecidedEvent } from "./memory/load-execution.ts";
import type { Pump } from "./round-loop.ts";
import { follow, followUndecided } from "./rounds/apply-event.ts";
import type { Committed, Job, Round } from "./rounds/round.ts";

/** Queues a job and waits until it is durable. Rejects with what it was refused with. */
export function runJob(
  pump: Pick<Pump, "push">,
  executionIds: string[],
  make: (base: Omit<Job, "check" | "apply">) => Job,
): Promise<Committed> {
  return new Promise((resolve, reject) => {
    pump.push(make(jobBase(executionIds, { settle: resolve, fail: reject })));
  });
}

/** Folds one event from outside into an execution, and what follows; says how it was judged. */
export async function inject(pump: Pick<Pump, "push">, executionId: string, event: FlowEvent): Promise<Acceptance> {
  let verdict: Acceptance = "late";
  const told = (judged: Acceptance) => {
    verdict = judged;
  };
  await runJob(pump, [executionId], (base) => injectJob(event, base, told));
  return verdict;
}

/** What every job has in common; `settle` and `fail` are the two ends of a promise. */
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
    // Works on one execution, or on each by itself: nothing of a part that was written is run again.
    keepRest(moved) {
      this.executionIds = this.executionIds.filter((id) => !moved.has(id));
    },
  };
}

/** Begins an execution: its first event, and what follows. `fresh` gives its state before that, anew for each try. */
export function startJob(
  first: FlowEvent,
  start: ExecutionStart,
  fresh: () => LiveExecution,
  base: Omit<Job, "check" | "apply">,
): Job {
  return {
    ...base,
    check: () => undefined,
    async apply(round) {
      // Nobody else has its id: an earlier try was written, and its answer lost.
      if (draftOf(round, base) !== undefined) return;
      await follow(round.begin(fresh(), start), first, round.follow);
    },
  };
}

/** Folds one event from outside, if it is acceptable, and what follows. `told` hears how it was judged. */
function injectJob(event: FlowEvent, base: Omit<Job, "check" | "apply">, told: (verdict: Acceptance) => void): Job {
  return {
    ...base,
    check(round) {
      if (draftOf(round, base) === undefined) throw unknownExecution(base.executionIds[0] ?? "");
    },
    async apply(round) {
      const draft = draftOf(round, base);
      if (draft === undefined) return;
      await followUndecided(draft, round.follow);
      const verdict = accept(draft.live.state, event);
      told(verdict);
      if (verdict === "accepted") await follow(draft, event, round.follow);
    },
  };
}

/**
 * Works out what follows from events that were only accepted so far, and marks the batch that brought them. `undecided` gives
 * the events for a state that was loaded since: it contains them, and does not know that nothing has followed yet. A state in
 * which `lastEventId`, the last of them, is missing is older than the batch: nothing would follow, and it counts for nothing.
 */
export function followJob(
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
        const live = round.draft(executionId)?.live;
        if (live === undefined || live.lastEventId >= lastEventId(executionId)) continue;
        throw new FlowError("UNAVAILABLE", `Execution ${executionId} is not known up to its batch ${requestId}`);
      }
    },
    async apply(round: Round) {
      job.commandsGenerated = 0;
      for (const executionId of job.executionIds) {
        const draft = round.draft(executionId);
        if (draft === undefined) continue;
        draft.live.undecided = [...undecided(executionId, draft.live), ...draft.live.undecided];
        job.commandsGenerated += await followUndecided(draft, round.follow);
      }
      const { commandsGenerated, executionIds } = job;
      round.batch({ requestId, state: "completed", commandsGenerated, executionIds });
    },
  };
  return job;
}

/** Writes that a batch has failed, and why. Its events stay in the log. */
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
      // Opening its draft takes the markers in.
      for (const executionId of base.executionIds) round.draft(executionId);
    },
  };
}

function draftOf(round: Round, { executionIds }: { executionIds: string[] }) {
  return round.draft(executionIds[0] ?? "");
}
