import { FlowError } from "../schema/errors.ts";
import type { Json } from "../schema/json.ts";
import { ReferenceNeeded, type References } from "./references.ts";

/** Payloads loaded for one command or one run. */
export interface LoadedReferences extends References {
  /** Evaluates; where a payload is missing, loads it and evaluates again. Throws what `evaluation` throws. */
  evaluate<T>(evaluation: () => T): Promise<T>;
}

/** Payloads kept for the next evaluation. Within one there is no limit: it needs all that it reads at once. */
const KEPT_MAX = 16;

/**
 * Payloads on demand: evaluation is synchronous and says what it lacks (`ReferenceNeeded`), this loads it. Every retry has
 * one payload more, so that it ends. A reference that cannot be loaded throws `REFERENCE_NOT_AVAILABLE` where it is read,
 * within the evaluation: a rule or an arc that reads it does not match, a template fails.
 */
export function loadedReferences(store: { load(ref: string): Promise<Json> }): LoadedReferences {
  const loaded = new Map<string, Json>();
  const load = async (ref: string): Promise<Json | FlowError> => {
    try {
      return await store.load(ref);
    } catch (error) {
      if (error instanceof FlowError && error.code === "REFERENCE_NOT_AVAILABLE") return error;
      throw error;
    }
  };
  const trim = () => {
    for (const ref of loaded.keys()) {
      if (loaded.size <= KEPT_MAX) return;
      loaded.delete(ref);
    }
  };
  // Those of the evaluation under way: evaluations of one command may take turns while a payload is loaded.
  const missing = new Map<string, FlowError>();
  return {
    get(ref) {
      const error = missing.get(ref);
      if (error !== undefined) throw error;
      return loaded.get(ref);
    },
    async evaluate(evaluation) {
      const failed: string[] = [];
      try {
        for (;;) {
          try {
            const value = evaluation();
            trim();
            return value;
          } catch (error) {
            if (!(error instanceof ReferenceNeeded)) throw error;
            const payload = await load(error.ref);
            if (payload instanceof FlowError) {
              failed.push(error.ref);
              missing.set(error.ref, payload);
            } else {
              loaded.set(error.ref, payload);
            }
          }
        }
      } finally {
        // The next evaluation asks again: the task that made the result may have run again.
        for (const ref of failed) missing.delete(ref);
      }
    },
  };
}
