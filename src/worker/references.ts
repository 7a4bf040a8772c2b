import { ReferenceNeeded, type References } from "../language/references.ts";
import type { ResultStore } from "../ports/result-store.ts";
import type { Json } from "../schema/json.ts";

/** Payloads loaded for one command or one run. */
export interface LoadedReferences extends References {
  /** Evaluates; where a payload is missing, loads it and evaluates again. Throws what `evaluation` throws. */
  evaluate<T>(evaluation: () => T): Promise<T>;
}

/** Payloads kept for the next evaluation. Within one there is no limit: it needs all that it reads at once. */
const KEPT_MAX = 16;

/**
 * Payloads on demand: evaluation is synchronous and says what it lacks (`ReferenceNeeded`), this loads it. Every retry has
 * one payload more, so that it ends; a reference that cannot be loaded throws `REFERENCE_NOT_AVAILABLE`.
 */
export function loadedReferences(store: ResultStore): LoadedReferences {
  const loaded = new Map<string, Json>();
  const trim = () => {
    for (const ref of loaded.keys()) {
      if (loaded.size <= KEPT_MAX) return;
      loaded.delete(ref);
    }
  };
  return {
    get: (ref) => loaded.get(ref),
    async evaluate(evaluation) {
      for (;;) {
        try {
          const value = evaluation();
          trim();
          return value;
        } catch (error) {
          if (!(error instanceof ReferenceNeeded)) throw error;
          loaded.set(error.ref, await store.load(error.ref));
        }
      }
    },
  };
}
