import type { Sealer } from "../schema/words/sealed.ts";

/** Which tree of executions a command belongs to. */
export interface SealingPlace {
  executionId: string;
  /** The execution at the top of the tree. */
  rootExecutionId: string;
}

/** Where a worker gets the means to seal and to open. Asked only when there is something to be sealed or opened. */
export interface SealerSource {
  /** Of the whole tree. Throws `FlowError` without a key: a value that cannot be sealed must not be sent. */
  sealerOf(place: SealingPlace, signal?: AbortSignal): Promise<Sealer>;
}
