import { isJsonObject } from "../../../src/schema/words/json.ts";

/** A call that was made in this tab. Arguments and results are not kept: the execution has them. */
export interface PastCall {
  executionId: string;
  agent: string;
  /** The call: `tools/list`, or the tool. */
  what: string;
  server: string | undefined;
  /** RFC 3339. */
  at: string;
  status: string;
}

const KEY = "flow.calls";
/** Calls that are remembered. */
const KEPT = 50;

/** The calls of this tab, newest first. */
export function pastCalls(): PastCall[] {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(KEY) ?? "[]");
    return Array.isArray(kept) ? (kept.filter(isJsonObject) as unknown as PastCall[]) : [];
  } catch {
    return [];
  }
}

/** Remembers a call, or how it ended. */
export function keepCall(call: PastCall): void {
  const others = pastCalls().filter(({ executionId }) => executionId !== call.executionId);
  try {
    sessionStorage.setItem(KEY, JSON.stringify([call, ...others].slice(0, KEPT)));
  } catch {
    // Full or switched off: the executions are in the list all the same.
  }
}
