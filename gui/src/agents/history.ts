import { isJsonObject, type JsonObject } from "../../../src/schema/words/json.ts";

/** A call that was made in this browser. Results are not kept: the execution has them. */
export interface PastCall {
  executionId: string;
  agent: string;
  /** The call: `tools/list`, or the tool. */
  what: string;
  server: string | undefined;
  /** RFC 3339. */
  at: string;
  status: string;
  /** Its inputs without secrets, where they are short: to make it again from. */
  workload?: JsonObject | undefined;
}

const KEY = "flow.calls";
/** Calls that are remembered. */
const KEPT = 50;

/** The calls of this browser, newest first. */
export function pastCalls(): PastCall[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(kept) ? (kept.filter(isJsonObject) as unknown as PastCall[]) : [];
  } catch {
    return [];
  }
}

/** Remembers a call, or how it ended. */
export function keepCall(call: PastCall): void {
  const others = pastCalls().filter(({ executionId }) => executionId !== call.executionId);
  try {
    localStorage.setItem(KEY, JSON.stringify([call, ...others].slice(0, KEPT)));
  } catch {
    // Full or switched off: the executions are in the list all the same.
  }
}
