import type { Json } from "../schema/json.ts";

/**
 * Payloads that are not inline, as far as they are at hand. Evaluation is synchronous, stores are not: what is missing is
 * asked for by {@link ReferenceNeeded}, loaded by the caller, and the evaluation is run again.
 */
export interface References {
  /** The payload, or undefined when it is not loaded. */
  get(ref: string): Json | undefined;
}

/** Not a failure: evaluation stopped because it needs the payload of `ref`. Load it and evaluate again. */
export class ReferenceNeeded extends Error {
  readonly ref: string;

  constructor(ref: string) {
    super(`The payload of ${ref} must be loaded first`);
    this.name = "ReferenceNeeded";
    this.ref = ref;
  }
}

/** For evaluations in which every payload is inline. */
export const noReferences: References = { get: () => undefined };
