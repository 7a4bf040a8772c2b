import type { BulkBody } from "../../../../src/schema/api/steering.ts";
import { type ExecutionFilter, FILTER_IDS_MAX } from "../../../../src/schema/rules/execution-filter.ts";
import { readExecutionQuery } from "../../../../src/schema/rules/execution-query.ts";
import type { ExecutionFilters } from "../filter/queries.ts";
import { sinceOf } from "../filter/spans.ts";
import { statesOf } from "../filter/state-filter.tsx";

/** What is to be done with many executions. */
export type BulkAction = BulkBody["action"];

/** The states that each action applies to; executions in other states would be skipped. */
const SUITS: Readonly<Record<BulkAction, readonly string[]>> = {
  cancel: ["PENDING", "RUNNING", "PAUSED"],
  pause: ["PENDING", "RUNNING"],
  resume: ["PAUSED"],
  rerun: ["COMPLETED", "FAILED", "CANCELLED"],
};

/** What the dialog asks. */
export interface BulkForm {
  action: BulkAction;
  /** The executions they called too; for all but a rerun. */
  cascade: boolean;
  /** Of a rerun: every step runs again, completed ones too. */
  isFromStart: boolean;
  /** Of a rerun: with the newest version of the playbook. */
  isNewest: boolean;
  reason: string;
}

/** What the dialog opens with: the first action that the states of the list allow. */
export function firstForm(filters: ExecutionFilters): BulkForm {
  const states = chosenStates(filters);
  const action = (["cancel", "resume", "rerun"] as const).find((one) =>
    SUITS[one].some((state) => states.length === 0 || states.includes(state)),
  );
  return { action: action ?? "cancel", cascade: true, isFromStart: false, isNewest: false, reason: "" };
}

/**
 * The body of the call: of the marked executions, or of all that match the filters of the list, those in a state that the action
 * applies to. Undefined: none of them can be. Spans count back from `now`, milliseconds since 1970.
 */
export function bulkBody(
  { action, cascade, isFromStart, isNewest, reason }: BulkForm,
  filters: ExecutionFilters,
  marked: ReadonlySet<string> | undefined,
  now: number,
): BulkBody | undefined {
  const chosen = marked === undefined ? chosenStates(filters, now) : [];
  const status = SUITS[action].filter((state) => chosen.length === 0 || chosen.includes(state));
  if (status.length === 0) return undefined;
  const which = marked === undefined ? listed(filters, now) : { execution_ids: [...marked].slice(0, FILTER_IDS_MAX) };
  const filter = { ...which, status } as BulkBody["filter"];
  const why = reason.trim() === "" ? {} : { reason: reason.trim() };
  if (action !== "rerun") return { action, filter, options: { ...why, ...(!cascade && { cascade }) } };
  return {
    action,
    filter,
    options: { ...why, ...(isFromStart && { from: "start" }), ...(isNewest && { version: "latest" }) },
  };
}

/** The list's filters in the API's words, without the states. */
function listed(
  { q, path, since, until, parent, roots }: ExecutionFilters,
  now: number,
): Omit<ExecutionFilter, "status"> {
  const { status: _, ...typed } = readExecutionQuery(q ?? "", now).filter ?? {};
  const chosen = {
    path_contains: path,
    since: sinceOf(since, now),
    until,
    parent_execution_id: parent,
    roots_only: roots === true ? roots : undefined,
  };
  // What is typed wins over what is chosen beside it, as in the list.
  return {
    ...Object.fromEntries(Object.entries(chosen).filter(([, value]) => value !== undefined && value !== "")),
    ...typed,
  };
}

/** The states that were typed, or chosen; empty: any. */
function chosenStates({ q, status }: ExecutionFilters, now = Date.now()): readonly string[] {
  return readExecutionQuery(q ?? "", now).filter?.status ?? statesOf(status);
}

/** `status: RUNNING, path_contains: etl`; of many ids their number. */
export function filterText(filter: Readonly<Record<string, unknown>>): string {
  const ids = filter["execution_ids"];
  const parts = Object.entries(filter).flatMap(([name, value]) => {
    if (name === "execution_ids") return [];
    const text = Array.isArray(value) ? value.join(", ").toLowerCase() : value;
    return [`${name.replaceAll("_", " ")}: ${typeof text === "object" ? JSON.stringify(text) : String(text)}`];
  });
  return [...(Array.isArray(ids) ? [`${ids.length} marked`] : []), ...parts].join("; ");
}
