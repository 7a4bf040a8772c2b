import type { Loading } from "../../schema/rules/whole-result.ts";
import type { Json } from "../../schema/words/json.ts";

/**
 * Loaded payloads of references. Evaluation is synchronous, stores are not: for a missing payload it throws {@link
 * ReferenceNeeded}, the caller loads the payload, and the evaluation is run again.
 */
export interface References {
  /** The payload, of a manifest what its parts come to; undefined when it is not loaded. */
  get(ref: string): Json | undefined;
}

/** Not a failure: evaluation stopped because it needs the payload of `ref`. Load it and evaluate again. */
export class ReferenceNeeded extends Error {
  readonly ref: string;
  /** What will be asked for after it: with these loaded too, the evaluation is run again once and not for each. */
  readonly then: readonly string[];
  /** How to load it if it is not a payload by itself: `ref` is then only its name in the cache. */
  readonly work: (() => Loading<Json>) | undefined;

  constructor(ref: string, then: readonly string[] = [], work?: () => Loading<Json>) {
    super(`The payload of ${ref} must be loaded first`);
    this.name = "ReferenceNeeded";
    this.ref = ref;
    this.then = then;
    this.work = work;
  }
}

/** Not a failure: evaluation stopped because it needs something that is in no store. Wait for `fetch` and evaluate again. */
export class ValueNeeded extends ReferenceNeeded {
  readonly fetch: () => Promise<unknown>;

  constructor(what: string, fetch: () => Promise<unknown>) {
    super(what);
    this.name = "ValueNeeded";
    this.fetch = fetch;
  }
}

/** For evaluations in which every payload is inline. */
export const noReferences: References = { get: () => undefined };

/** What is kept under a name. Throws {@link ReferenceNeeded} when nothing is, with the work that gives it. */
export function keptAs(name: string, references: References, work: () => Loading<Json>): Json {
  const value = references.get(name);
  if (value === undefined) throw new ReferenceNeeded(name, [], work);
  return value;
}

/** Carries work out with the payloads that are at hand. Throws {@link ReferenceNeeded} at the first that is not. */
export function withReferences<T>(work: Loading<T>, references: References): T {
  let step = work.next();
  while (step.done !== true) {
    const { ref, then } = step.value;
    const payload = references.get(ref);
    if (payload === undefined) throw new ReferenceNeeded(ref, then);
    step = work.next(payload);
  }
  return step.value;
}
