import type { ParentRef } from "../schema/words/event.ts";
import type { JsonObject } from "../schema/words/json.ts";
import type { TaskError } from "../schema/words/outcome.ts";
import type { StoredResult } from "../schema/words/result.ts";

/** A call of another playbook from a task. */
export interface ChildRequest {
  /** Catalog path; the local runtime also takes a file path relative to the parent's document. */
  path?: string;
  catalogId?: string;
  version?: string;
  input: JsonObject;
  /** The step of the child whose result is wanted instead of the child's own. */
  returnStep?: string;
  /** Start it and do not wait. */
  async: boolean;
  parent: ParentRef & { step: string };
  /** Document of the parent, against which file paths are resolved. */
  parentFile: string;
  /** The same whenever this run of the task is begun anew: after a crash its child is found, and not started again. */
  key: string;
  /** W3C `traceparent` of the task that calls. */
  traceparent?: string;
}

/** What became of a child. */
export interface ChildOutcome {
  executionId: string;
  path: string;
  status: "COMPLETED" | "FAILED" | "CANCELLED" | "STARTED";
  /** Result of `returnStep`, else of the execution; null without a result. */
  result: StoredResult | null;
  error: TaskError | null;
}

/** Runs child executions. Throws `FlowError` when there is no such playbook or it is invalid. */
export interface ChildRunner {
  /** Waits for the child to end, unless it is `async`. Aborting the signal cancels the child. */
  run(request: ChildRequest, signal: AbortSignal): Promise<ChildOutcome>;
}
