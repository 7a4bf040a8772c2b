import { loading, referenced } from "../../schema/rules/whole-result.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Json } from "../../schema/words/json.ts";
import { ReferenceNeeded, type References, ValueNeeded } from "../views/references.ts";

/** Payloads loaded for one command or one run. */
export interface LoadedReferences extends References {
  /** Evaluates; where a payload is missing, loads it and evaluates again. Throws what `evaluation` throws. */
  evaluate<T>(evaluation: () => T): Promise<T>;
  /** What is kept of this reference is not what is stored any more: a task that runs again stores under the same ones. */
  forget(ref: string): void;
}

/** Payloads kept for the next evaluation. Within one there is no limit: it needs all that it reads at once. */
const KEPT_MAX = 16;

/**
 * Payloads on demand: evaluation is synchronous and says what it lacks (`ReferenceNeeded`), this loads it. Every retry has
 * one payload more at least, so that it ends. A reference that cannot be loaded throws `REFERENCE_NOT_AVAILABLE` where it is read,
 * within the evaluation: a rule or an arc that reads it does not match, a template fails.
 */
export function loadedReferences(store: { load(ref: string): Promise<Json> }): LoadedReferences {
  const loaded = new Map<string, Json>();
  const load = async (ref: string, work = () => referenced(ref)): Promise<Json | FlowError> => {
    try {
      // A manifest is loaded part by part: only the merged value is kept.
      return await loading(work(), (part) => store.load(part));
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
  // Of the evaluation that runs at this moment. Several of one command may be under way: what one of them has loaded must
  // not be trimmed by another before it is evaluated again.
  let own: Map<string, Json | FlowError> | undefined;
  return {
    forget: (ref) => void loaded.delete(ref),
    get(ref) {
      const payload = own?.has(ref) === true ? own.get(ref) : loaded.get(ref);
      if (payload instanceof FlowError) throw payload;
      return payload;
    },
    async evaluate(evaluation) {
      const attempted = new Map<string, Json | FlowError>();
      for (;;) {
        try {
          own = attempted;
          const value = evaluation();
          // A failure is not kept: the task that made the result may run again.
          for (const [ref, payload] of attempted) if (!(payload instanceof FlowError)) loaded.set(ref, payload);
          trim();
          return value;
        } catch (error) {
          if (!(error instanceof ReferenceNeeded)) throw error;
          own = undefined;
          if (error instanceof ValueNeeded) {
            await error.fetch();
            continue;
          }
          for (const ref of new Set([error.ref, ...error.then])) {
            if (ref !== error.ref && (attempted.has(ref) || loaded.has(ref))) continue;
            const payload = await load(ref, ref === error.ref ? error.work : undefined);
            attempted.set(ref, payload);
            // What reads it fails: the rest need not be loaded to find that out.
            if (payload instanceof FlowError) break;
          }
        } finally {
          own = undefined;
        }
      }
    },
  };
}
