import { insertAudit } from "../../repositories/access/audit.ts";
import {
  type BulkRow,
  claimBulk,
  completeBulk,
  findBulk,
  findBulkByKey,
  insertBulk,
  releaseBulk,
  renewBulk,
  setBulkStatus,
} from "../../repositories/bulk/bulk.ts";
import {
  type BulkFailure,
  type BulkStarted,
  beginBulkItems,
  endBulkItems,
  listBulkFailures,
  listBulkStarted,
} from "../../repositories/bulk/bulk-items.ts";
import { type Database, transaction } from "../../repositories/database/database.ts";
import { violatedConstraint } from "../../repositories/database/error-codes.ts";
import { reserveIds } from "../../repositories/database/ids.ts";
import type { Visible } from "../../repositories/database/page.ts";
import { type ExecutionRow, findExecutions } from "../../repositories/executions/execution-list.ts";
import { matchingExecutions } from "../../repositories/executions/matching-executions.ts";
import type { TriggerRow } from "../../repositories/triggers/triggers.ts";
import {
  BULK_FAILURES_LISTED,
  BULK_MATCHED_MAX,
  BULK_PLANNED,
  BULK_SAMPLE,
  BULK_STARTED_LISTED,
  type BulkAction,
  type BulkRerunOptions,
  type BulkStatus,
} from "../../schema/api/steering.ts";
import type { ExecutionFilter } from "../../schema/rules/execution-filter.ts";
import type { AuditEntry } from "../../schema/words/audit-entry.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import type { Caller } from "../access/audit.ts";
import { otherBody } from "../errors.ts";
import { type BackfillPreview, type BackfillRange, placesOf, previewTimes, recordOf, wantedTimes } from "./backfill.ts";
import { type BulkItemDeps, decideBulkItem } from "./bulk-item.ts";
import { auditedOptions, sealedOptions } from "./bulk-options.ts";
import { type PlannedItem, planItem } from "./bulk-rerun.ts";

/** Who asks for an operation, and by whose rights its items are decided. */
export interface BulkCaller {
  /** As the audit log names them. */
  name: string;
  /** Absent: an operator. */
  userId?: string;
  /** What the audit log says of them. */
  audit?: Caller;
}

/** What to do with the executions of a filter. */
export interface BulkRequest {
  action: BulkAction;
  filter: ExecutionFilter;
  options: JsonObject;
  /** A call that is repeated under its key begins nothing. */
  idempotency?: { caller: string; key: string; bodySha256: string };
  /** The row of the audit log that is written with the operation. `options`: without their values, which may be confidential. */
  log?(bulkId: string, matched: number, options: JsonObject): AuditEntry;
}

/** An operation, with its first failures and the first executions that it has started. */
export interface BulkDetail {
  row: BulkRow;
  failures: BulkFailure[];
  started: BulkStarted[];
}

/** What an operation would be about: how many, and the newest of them, some with what a rerun would run. */
export interface BulkPreview {
  matched: number;
  sample: (ExecutionRow & { plan?: PlannedItem })[];
}

/** Operations on many executions (control, section 1, rules 15 and 16). */
export interface BulkOperations {
  /**
   * Fixes what the filter means now, of what the caller may execute, and begins. Throws `FlowError` INVALID_INPUT for more than
   * {@link BULK_MATCHED_MAX}, for a filter that takes too long to be looked through, or for a key that had another body.
   */
  start(
    request: BulkRequest,
    caller: BulkCaller,
    visible: Visible,
  ): Promise<{ bulkId: string; matched: number; duplicate: boolean }>;
  /**
   * Makes up for times of a schedule, whether its trigger is enabled or not (control, rule 45). Throws `FlowError` INVALID_INPUT for a trigger
   * without a schedule, and as {@link start} does.
   */
  backfill(
    trigger: TriggerRow,
    request: BackfillRange & Pick<BulkRequest, "idempotency" | "log">,
    caller: BulkCaller,
  ): Promise<{ bulkId: string; matched: number; duplicate: boolean }>;
  /** What a backfill would be about. Throws as {@link backfill} does. */
  previewBackfill(trigger: TriggerRow, range: BackfillRange): Promise<BackfillPreview>;
  /** What it would be about. */
  preview(request: BulkRequest, visible: Visible): Promise<BulkPreview>;
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
/** Items that are begun together, and are under way at a time: as many may be repeated by another server if this one dies. */
export const SLICE = 8;
const LEASE_MS = 5_000;
const RENEW_MS_MIN = 20;
/** How long one run works, ms. */
const RUN_MS = 2_000;
/** Longest time for the plans of a preview, ms; those that are not made by then are left out. */
const PLAN_MS = 3_000;

/** The operations of a database. */
export function createBulkOperations(deps: BulkDeps): BulkOperations {
  const { database, holder, busy } = deps;
  const detailOf = (row: BulkRow) => readDetail(database, row);
  const own = async (bulkId: string, { userId }: BulkCaller) => {
    const row = await findBulk(database, bulkId);
    if (row === undefined || (userId !== undefined && row.userId !== userId)) throw unknown(bulkId);
    return row;
  };
  return {
    async start({ action, filter, options, idempotency, log }, { name, userId = null, audit }, visible) {
      const known = await knownBulk(database, idempotency);
      if (known !== undefined) return known;
      const ids = await matchedBy(deps, filter, visible);
      const asker = { ...(audit as JsonObject | undefined) };
      const asked = { action, filter: filter as JsonObject, options, askedBy: name, userId, asker };
      return await begin(deps, { ...asked, ...defined({ idempotency }) }, ids, (bulkId) =>
        log?.(bulkId, ids.length, auditedOptions(options)),
      );
    },
    async backfill(trigger, { idempotency, log, ...range }, { name, userId = null, audit }) {
      const known = await knownBulk(database, idempotency);
      if (known !== undefined) return known;
      const dues = (await wantedTimes(database, trigger, range)).map((dueAt) => new Date(dueAt));
      const asker = { ...(audit as JsonObject | undefined) };
      const asked = { action: "backfill", ...recordOf(trigger, range), askedBy: name, userId, asker } as const;
      return await begin(deps, { ...asked, ...defined({ idempotency }) }, dues, (bulkId) =>
        log?.(bulkId, dues.length, asked.options),
      );
    },
    previewBackfill: (trigger, range) => previewTimes(database, trigger, range),
    async preview({ action, filter, options }, visible) {
      const ids = await matchedBy(deps, filter, visible);
      const sample: BulkPreview["sample"] = await findExecutions(database, ids.slice(0, BULK_SAMPLE));
      const began = busy();
      for (const row of action === "rerun" ? sample.slice(0, BULK_PLANNED) : []) {
        if (busy() - began > PLAN_MS) break;
        row.plan = await planItem(deps.executions, row.executionId, options as BulkRerunOptions);
      }
      return { matched: ids.length, sample };
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
      const waiting: string[] = [];
      while (busy() - began < RUN_MS) {
        const came = await workOnSlice(deps, waiting);
        if (came === "nothing") break;
        isAny ||= came === "worked";
      }
      return isAny;
    },
    end: () => releaseBulk(database, holder),
  };
}

async function readDetail(database: Database, row: BulkRow): Promise<BulkDetail> {
  const { bulkId, action } = row;
  const hasStarted = action === "rerun" || action === "backfill";
  return {
    row,
    failures: row.failed === 0 ? [] : await listBulkFailures(database, bulkId, BULK_FAILURES_LISTED),
    started: hasStarted ? await listBulkStarted(database, bulkId, BULK_STARTED_LISTED) : [],
  };
}

/** Writes an operation with its items and its row of the audit log. Of two calls with one key the first counts. */
async function begin(
  { database, sealerOf }: Pick<BulkDeps, "database" | "sealerOf">,
  asked: Omit<Parameters<typeof insertBulk>[1], "bulkId">,
  about: Parameters<typeof insertBulk>[2],
  entryOf: (bulkId: string) => AuditEntry | undefined,
): Promise<{ bulkId: string; matched: number; duplicate: boolean }> {
  const [bulkId = ""] = await reserveIds(database, 1);
  try {
    await transaction(database, async (tx) => {
      await insertBulk(tx, { bulkId, ...asked, options: sealedOptions(asked.options, sealerOf(bulkId)) }, about);
      const entry = entryOf(bulkId);
      await insertAudit(tx, entry === undefined ? [] : [entry]);
    });
  } catch (error) {
    // Two calls with one key at the same moment: the other one was first.
    const isOther = violatedConstraint(error) === "bulk_for_idempotency";
    const first = isOther ? await knownBulk(database, asked.idempotency) : undefined;
    if (first === undefined) throw error;
    return first;
  }
  return { bulkId, matched: about.length, duplicate: false };
}

/** The operation that an earlier call with the key has begun. Throws `FlowError` INVALID_INPUT if that had another body. */
async function knownBulk(database: BulkDeps["database"], idempotency: BulkRequest["idempotency"]) {
  if (idempotency === undefined) return undefined;
  const { caller, key, bodySha256 } = idempotency;
  const row = await findBulkByKey(database, caller, key);
  if (row === undefined) return undefined;
  if (row.bodySha256 !== bodySha256) throw otherBody(key);
  return { bulkId: row.bulkId, matched: row.matched, duplicate: true };
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

/**
 * Works on some items of one operation other than those of `waiting`. `nothing`: no such operation is under way, or its executions cannot be
 * reached. `waits`: it is a backfill with as many open executions as it may have, and is one of `waiting` now.
 */
async function workOnSlice(deps: BulkDeps, waiting: string[]): Promise<"worked" | "waits" | "nothing"> {
  const { database, holder, leaseMs = LEASE_MS } = deps;
  const operation = await claimBulk(database, holder, leaseMs, waiting);
  if (operation === undefined) return "nothing";
  const { bulkId } = operation;
  // Of one that was paused or cancelled, what was begun is ended whatever is open.
  const isBounded = operation.action === "backfill" && operation.status === "running";
  const places = isBounded ? await placesOf(database, operation) : SLICE;
  const isFull = places === 0;
  const limit = isFull ? SLICE : Math.min(SLICE, places);
  const items = await beginBulkItems(database, { bulkId, worker: holder, isFull }, limit);
  if (items.length === 0) {
    // The last ones may be open: it has ended when all are started.
    await completeBulk(database, bulkId);
    if (isFull) waiting.push(bulkId);
    return isFull ? "waits" : "worked";
  }
  const stopRenewing = renewing(deps, bulkId);
  const all = await Promise.all(items.map((item) => decideBulkItem(deps, operation, item))).finally(stopRenewing);
  const decided = all.filter((one) => one !== undefined);
  // An item and its row of the audit log: both or neither.
  await transaction(database, async (tx) => {
    const outcomes = decided.map(({ outcome }) => outcome);
    const ended = new Set(await endBulkItems(tx, bulkId, outcomes));
    const entries = decided.flatMap(({ outcome, entry }) =>
      entry !== undefined && ended.has(outcome.executionId) ? [entry] : [],
    );
    await insertAudit(tx, entries);
  });
  // What could not be tried stays begun, and is tried by a later run.
  return decided.length === all.length ? "worked" : "nothing";
}

/** Keeps an operation for this server while something of it is under way: another one would begin the same. Returns what ends that. */
function renewing({ database, holder, leaseMs = LEASE_MS }: BulkDeps, bulkId: string): () => void {
  const renew = async () => {
    // Without the database no other server can take it either.
    const isHeld = await renewBulk(database, { bulkId, worker: holder }, leaseMs).catch(() => true);
    if (!isHeld) stop();
  };
  const timer = setInterval(() => void renew(), Math.max(leaseMs / 3, RENEW_MS_MIN)).unref();
  const stop = () => clearInterval(timer);
  return stop;
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
  return new FlowError("INVALID_INPUT", `The filter matches more than ${BULK_MATCHED_MAX} executions. ${hint}`);
}

function tooLong(): FlowError {
  const hint = "Name a status, a path, a label or a time that leaves out most executions";
  return new FlowError("INVALID_INPUT", `The filter's matches were not found within ${LOOK_MS / 1_000} s. ${hint}`);
}
