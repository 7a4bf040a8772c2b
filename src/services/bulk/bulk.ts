import {
  type BulkRow,
  claimBulk,
  completeBulk,
  findBulk,
  insertBulk,
  releaseBulk,
  setBulkStatus,
} from "../../repositories/bulk/bulk.ts";
import {
  type BulkFailure,
  beginBulkItems,
  endBulkItems,
  listBulkFailures,
} from "../../repositories/bulk/bulk-items.ts";
import { reserveIds } from "../../repositories/database/ids.ts";
import type { Visible } from "../../repositories/database/page.ts";
import { type ExecutionRow, findExecution } from "../../repositories/executions/execution-list.ts";
import { matchingExecutions } from "../../repositories/executions/matching-executions.ts";
import {
  BULK_FAILURES_LISTED,
  BULK_MATCHED_MAX,
  BULK_SAMPLE,
  type BulkAction,
  type BulkStatus,
} from "../../schema/api/steering.ts";
import type { ExecutionFilter } from "../../schema/rules/execution-filter.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import { type BulkItemDeps, decideBulkItem } from "./bulk-item.ts";

/** Who asks for an operation, and by whose rights its items are decided. */
export interface BulkCaller {
  /** As the audit log names them. */
  name: string;
  /** Absent: an operator. */
  userId?: string;
}

/** What to do with the executions of a filter. */
export interface BulkRequest {
  action: BulkAction;
  filter: ExecutionFilter;
  options: JsonObject;
}

/** An operation with its first failures. */
export interface BulkDetail {
  row: BulkRow;
  failures: BulkFailure[];
}

/** Operations on many executions (control, section 1, rules 15 and 16). */
export interface BulkOperations {
  /**
   * Fixes what the filter means now, of what the caller may execute, and begins. Throws `FlowError` INVALID_INPUT for more than
   * {@link BULK_MATCHED_MAX}, or for a filter that takes too long to be looked through.
   */
  start(request: BulkRequest, caller: BulkCaller, visible: Visible): Promise<{ bulkId: string; matched: number }>;
  /** What it would be about: how many, and some of them. */
  preview(filter: ExecutionFilter, visible: Visible): Promise<{ matched: number; sample: ExecutionRow[] }>;
  /** Throws `FlowError` NOT_FOUND, also for one that another user has asked for. */
  find(bulkId: string, caller: BulkCaller): Promise<BulkDetail>;
  /** Items that are under way end. Asked for twice it changes nothing. Throws `FlowError` NOT_FOUND, already_terminal. */
  steer(bulkId: string, what: "cancel" | "pause" | "resume", caller: BulkCaller): Promise<BulkDetail>;
  /** Works on what is there for at most a second or two; false if there was nothing. For the background. */
  workOff(): Promise<boolean>;
  /** Another server may go on at once. */
  end(): Promise<void>;
}

/** What {@link createBulkOperations} needs. */
export interface BulkDeps extends BulkItemDeps {
  /** Name of this process, and not of the one after its restart. */
  holder: string;
  /** A server that is silent for so long has died: another one goes on. Default 5 s. */
  leaseMs?: number;
  /** Milliseconds of a clock that does not jump. */
  busy(): number;
}

/** Ids that one statement looks for. */
const PAGE = 5_000;
/** Longest time for finding out what a filter means, ms: the caller waits for it. */
const LOOK_MS = 20_000;
/** Items that are begun together: as many may be repeated by another server if this one dies. */
const SLICE = 40;
/** Items that are under way at a time. */
const AT_ONCE = 8;
/** How long one run works, ms. */
const RUN_MS = 2_000;

/** The operations of a database. */
export function createBulkOperations(deps: BulkDeps): BulkOperations {
  const { database, holder, busy } = deps;
  const detailOf = async (row: BulkRow): Promise<BulkDetail> => ({
    row,
    failures: row.failed === 0 ? [] : await listBulkFailures(database, row.bulkId, BULK_FAILURES_LISTED),
  });
  const own = async (bulkId: string, { userId }: BulkCaller) => {
    const row = await findBulk(database, bulkId);
    if (row === undefined || (userId !== undefined && row.userId !== userId)) throw unknown(bulkId);
    return row;
  };
  return {
    async start({ action, filter, options }, { name, userId = null }, visible) {
      const ids = await matchedBy(deps, filter, visible);
      const [bulkId = ""] = await reserveIds(database, 1);
      const asked = { action, filter: filter as JsonObject, options, askedBy: name, userId };
      await insertBulk(database, { bulkId, ...asked }, ids);
      return { bulkId, matched: ids.length };
    },
    async preview(filter, visible) {
      const ids = await matchedBy(deps, filter, visible);
      const rows = await Promise.all(ids.slice(0, BULK_SAMPLE).map((id) => findExecution(database, id)));
      return { matched: ids.length, sample: rows.filter((row) => row !== undefined) };
    },
    find: async (bulkId, caller) => await detailOf(await own(bulkId, caller)),
    async steer(bulkId, what, caller) {
      await own(bulkId, caller);
      const [from, to] = STEPS[what];
      const row = (await setBulkStatus(database, bulkId, from, to)) ?? (await own(bulkId, caller));
      const isOver = row.status === "completed" || row.status === "cancelled";
      if (isOver && row.status !== to) {
        const message = `Bulk operation ${bulkId} cannot be changed: it has ended (${row.status})`;
        throw new FlowError("already_terminal", message);
      }
      return await detailOf(row);
    },
    async workOff() {
      const began = busy();
      let isAny = false;
      while (busy() - began < RUN_MS && (await workOnSlice(deps))) isAny = true;
      return isAny;
    },
    end: () => releaseBulk(database, holder),
  };
}

/** Ids of all that a filter means now. */
async function matchedBy(
  { database, busy }: Pick<BulkDeps, "database" | "busy">,
  filter: ExecutionFilter,
  { visible }: Visible,
): Promise<string[]> {
  const ids: string[] = [];
  const began = busy();
  for (let cursor: string | undefined; ; ) {
    const key = cursor === undefined ? {} : { cursor };
    const { items, next } = await matchingExecutions(database, { ...filter, visible }, { limit: PAGE, ...key });
    ids.push(...items);
    if (ids.length > BULK_MATCHED_MAX) throw tooMany();
    if (next === undefined) return ids;
    if (busy() - began > LOOK_MS) throw tooLong();
    cursor = next;
  }
}

/** Works on some items of one operation; false if no operation is under way, or its executions cannot be reached. */
async function workOnSlice(deps: BulkDeps): Promise<boolean> {
  const { database, holder, leaseMs = 5_000 } = deps;
  const operation = await claimBulk(database, holder, leaseMs);
  if (operation === undefined) return false;
  const items = await beginBulkItems(database, operation.bulkId, SLICE);
  if (items.length === 0) {
    await completeBulk(database, operation.bulkId);
    return true;
  }
  const left = [...items];
  let isAway = false;
  const work = async () => {
    for (let item = left.shift(); item !== undefined && !isAway; item = left.shift()) {
      const outcome = await decideBulkItem(deps, operation, item);
      // What could not be tried stays begun, and is tried by a later run.
      if (outcome === undefined) isAway = true;
      else await endBulkItems(database, operation.bulkId, [outcome]);
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, work));
  return !isAway;
}

const STEPS: Record<"cancel" | "pause" | "resume", [from: BulkStatus[], to: BulkStatus]> = {
  cancel: [["running", "paused"], "cancelled"],
  pause: [["running"], "paused"],
  resume: [["paused"], "running"],
};

function unknown(bulkId: string): FlowError {
  return new FlowError("NOT_FOUND", `There is no bulk operation ${bulkId}`);
}

function tooMany(): FlowError {
  const hint = "Narrow the filter, for example by 'since' and 'until', and send several";
  return new FlowError("INVALID_INPUT", `The filter means more than ${BULK_MATCHED_MAX} executions. ${hint}`);
}

function tooLong(): FlowError {
  const hint = "Name a status, a path, a label or a time that leaves out most executions";
  return new FlowError("INVALID_INPUT", `What the filter means was not found out within ${LOOK_MS / 1_000} s. ${hint}`);
}
