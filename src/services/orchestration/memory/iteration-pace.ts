import type { EventOf } from "../../../schema/words/event.ts";
import type { Step } from "../../../schema/words/playbook.ts";

/** How long the iterations of steps take, as this server has seen: short ones share commands. */
export interface IterationPace {
  /** Sees a task run of an iteration. */
  note(step: Step, event: EventOf<"task.done">): void;
  /** How many iterations of a step may share a command; 1 until enough of them have been seen. */
  atOnce(step: Step): number;
}

/** Most iterations of one command: beyond that, a command costs little beside its iterations. */
const AT_ONCE_MAX = 16;
/** Task runs after which a step is known. */
const RUNS_MIN = 32;
/** Of a new run in the mean: some thirty decide it. */
const WEIGHT = 1 / 16;
/** How long the iterations of a command take together at most, if they ran one after the other, milliseconds. */
const COMMAND_MS = 64;

/** Nothing is known yet. */
export function createIterationPace(): IterationPace {
  /** By the step of a compiled playbook, which is forgotten with it. */
  const known = new WeakMap<Step, { runs: number; meanMs: number }>();
  return {
    note(step, event) {
      const waits = event.next_run_at === undefined ? 0 : Math.max(0, Date.parse(event.next_run_at) - event.at);
      const ms = event.duration_ms + waits;
      const pace = known.get(step) ?? { runs: 0, meanMs: ms };
      pace.runs += 1;
      pace.meanMs += (ms - pace.meanMs) * WEIGHT;
      known.set(step, pace);
    },
    atOnce(step) {
      const pace = known.get(step);
      if (pace === undefined || pace.runs < RUNS_MIN || callsPlaybooks(step)) return 1;
      const iterationMs = pace.meanMs * step.tasks.length;
      return Math.max(1, Math.min(AT_ONCE_MAX, Math.floor(COMMAND_MS / (iterationMs + 1))));
    },
  };
}

/** A command that waits for a child gives its slot back: each must have its own. */
function callsPlaybooks({ tasks }: Step): boolean {
  return tasks.some(({ kind }) => kind === "playbook" || kind === "workbook");
}
