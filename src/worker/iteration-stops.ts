import { FlowError } from "../schema/words/errors.ts";

/** Which iterations of a claimed command were ended by hand while it runs. */
export interface IterationStops {
  /** Stops what runs of these; those that have not begun are not begun. Repeats are harmless. */
  stop(iterations: readonly number[]): void;
  has(iteration: number): boolean;
  /** For the iterations of a command whose own signal this is. `end` when none of them runs any more. */
  watch(signal: AbortSignal): WatchedIterations;
}

/** Iterations that can be stopped one by one. */
export interface WatchedIterations {
  /** Runs one with a signal of its own: it aborts with the command's, and when this one is ended by hand. */
  run<T>(iteration: number, work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  end(): void;
}

/**
 * None yet. `newAbort`: makes a controller whose signal may have any number of listeners. Each iteration has a controller and the
 * command one listener: `AbortSignal.any` for each of many thousand short iterations would cost more than they do.
 */
export function createIterationStops(newAbort: () => AbortController): IterationStops {
  const stopped = new Set<number>();
  const running = new Map<number, AbortController>();
  return {
    stop(iterations) {
      for (const iteration of iterations) {
        if (stopped.has(iteration)) continue;
        stopped.add(iteration);
        running.get(iteration)?.abort(new FlowError("CANCELLED", `Iteration ${iteration} was ended by hand`));
      }
    },
    has: (iteration) => stopped.has(iteration),
    watch(signal) {
      const stopAll = () => {
        for (const controller of running.values()) controller.abort(signal.reason);
      };
      signal.addEventListener("abort", stopAll, { once: true });
      return {
        async run(iteration, work) {
          const controller = newAbort();
          if (signal.aborted) controller.abort(signal.reason);
          running.set(iteration, controller);
          try {
            return await work(controller.signal);
          } finally {
            running.delete(iteration);
          }
        },
        end: () => signal.removeEventListener("abort", stopAll),
      };
    },
  };
}
