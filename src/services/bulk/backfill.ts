import { setImmediate } from "node:timers/promises";
import { momentMs } from "../../language/words/moments.ts";
import { duesBetween } from "../../language/words/schedule.ts";
import { openOfBackfill, startedDues } from "../../repositories/bulk/backfill.ts";
import type { BulkRow } from "../../repositories/bulk/bulk.ts";
import type { BulkItem, BulkOutcome } from "../../repositories/bulk/bulk-items.ts";
import type { Database } from "../../repositories/database/database.ts";
import { databaseNow, type TriggerRow } from "../../repositories/triggers/triggers.ts";
import { BULK_MATCHED_MAX, BULK_SAMPLE } from "../../schema/api/steering.ts";
import { BACKFILL_GAPS_LISTED } from "../../schema/triggers/backfill.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import type { Triggers } from "../triggers/triggers.ts";

/** Which times of a schedule are made up for, and how. `from` and `to` are moments as people write them; `to` is left out. */
export interface BackfillRange {
  from: string;
  to: string;
  maxActive: number;
  order: "oldest" | "newest";
  onlyMissing: boolean;
}

/** A time, and the newest execution that was started for it, if any was. */
export interface BackfillTime {
  dueAt: number;
  executionId?: string;
}

/** What a backfill would be about. */
export interface BackfillPreview {
  /** Times for which it would start an execution. */
  matched: number;
  /** Times of the range for which none was started. */
  missing: number;
  /** Times that are missing one after the other: the first, the last, and how many; the oldest come first. */
  gaps: { from: number; to: number; count: number }[];
  /** The first of those that are matched, in its order. */
  sample: BackfillTime[];
}

/** Times that are worked out in one turn: some 5 ms. */
const DUES_IN_TURN = 50;

/**
 * The times of a trigger that a backfill starts executions for, in its order. Throws `FlowError` INVALID_INPUT for a trigger without a
 * schedule, a text that is no moment, a range that is empty or reaches into the future, or more than {@link BULK_MATCHED_MAX} times.
 */
export async function wantedTimes(database: Database, trigger: TriggerRow, range: BackfillRange): Promise<number[]> {
  return wantedOf(await timesOf(database, trigger, range), range).map(({ dueAt }) => dueAt);
}

/** What it would be about. Throws as {@link wantedTimes} does. */
export async function previewTimes(
  database: Database,
  trigger: TriggerRow,
  range: BackfillRange,
): Promise<BackfillPreview> {
  const times = await timesOf(database, trigger, range);
  const wanted = wantedOf(times, range);
  const missing = times.filter(({ executionId }) => executionId === undefined).length;
  return { matched: wanted.length, missing, gaps: gapsOf(times), sample: wanted.slice(0, BULK_SAMPLE) };
}

function wantedOf(times: readonly BackfillTime[], { onlyMissing, order }: BackfillRange): BackfillTime[] {
  const wanted = times.filter(({ executionId }) => !onlyMissing || executionId === undefined);
  return order === "newest" ? wanted.reverse() : wanted;
}

function gapsOf(times: readonly BackfillTime[]): BackfillPreview["gaps"] {
  const gaps: BackfillPreview["gaps"] = [];
  let isOpen = false;
  for (const { dueAt, executionId } of times) {
    const last = gaps.at(-1);
    if (executionId !== undefined) isOpen = false;
    else if (isOpen && last !== undefined) Object.assign(last, { to: dueAt, count: last.count + 1 });
    else if (gaps.length === BACKFILL_GAPS_LISTED) break;
    else {
      gaps.push({ from: dueAt, to: dueAt, count: 1 });
      isOpen = true;
    }
  }
  return gaps;
}

/** The times of the range, oldest first, with what was started for them. */
async function timesOf(
  database: Database,
  { triggerId, name, definition, activeSince }: TriggerRow,
  range: BackfillRange,
): Promise<BackfillTime[]> {
  const { schedule } = definition;
  if (schedule === undefined)
    throw new FlowError("INVALID_INPUT", `'${name}' cannot be made up for: it has no schedule, but ${definition.kind}`);
  const [from, to] = [momentOf(range, "from", schedule.timezone), momentOf(range, "to", schedule.timezone)];
  if (from >= to) throw wrong("to", "The range is empty: 'from' must be before 'to'", "is not after 'from'");
  const now = await databaseNow(database);
  if (to > now) {
    const until = new Date(now).toISOString();
    const message = `'to' lies in the future, and the schedule fires what is to come. Give a time up to ${until}`;
    throw wrong("to", message, "lies in the future");
  }
  const dues: number[] = [];
  const since = sinceBefore(from, activeSince.getTime(), schedule.everyMs);
  for (let after = from - 1; ; ) {
    const some = duesBetween(schedule, { from: after, until: to - 1, activeSince: since }, DUES_IN_TURN);
    dues.push(...some);
    if (dues.length > BULK_MATCHED_MAX) throw tooMany();
    if (some.length < DUES_IN_TURN) break;
    after = some.at(-1) ?? to;
    await setImmediate();
  }
  const rows = await startedDues(database, triggerId, from, to);
  const started = new Map(rows.map((row) => [row.dueAt.getTime(), row.executionId]));
  return dues.map((dueAt) => {
    const executionId = started.get(dueAt);
    return { dueAt, ...(executionId !== undefined && { executionId }) };
  });
}

function momentOf(range: BackfillRange, name: "from" | "to", zone: string): number {
  const ms = momentMs(range[name], zone);
  if (ms !== undefined) return ms;
  const message = `'${name}' is no moment: '${range[name]}'. Write it as 2026-01-31 or 2026-01-31T12:00:00Z`;
  throw wrong(name, message, "is no moment");
}

/** An interval is counted from when the trigger came; before that in the same step. */
function sinceBefore(from: number, activeSince: number, everyMs: number | undefined): number {
  if (everyMs === undefined || activeSince < from) return activeSince;
  return activeSince - Math.ceil((activeSince - from + 1) / everyMs) * everyMs;
}

/** What the row of a backfill says of it, for people and for {@link placesOf}. */
export function recordOf(
  { triggerId, path, name }: TriggerRow,
  { from, to, maxActive, order, onlyMissing }: BackfillRange,
): { filter: JsonObject; options: JsonObject } {
  return {
    filter: { path, trigger: name, from, to },
    options: { trigger_id: triggerId, max_active: maxActive, order, only_missing: onlyMissing },
  };
}

/** How many further executions of a backfill may be open now. */
export async function placesOf(database: Database, { bulkId, options }: BulkRow): Promise<number> {
  const max = Number(options["max_active"]);
  return Math.max(0, max - (await openOfBackfill(database, triggerOf({ options }), keyEnd(bulkId), max)));
}

/** The trigger of a backfill. */
export function triggerOf({ options }: Pick<BulkRow, "options">): string {
  return String(options["trigger_id"]);
}

/** What keys of its fires end with: trigger, due time and backfill are one fire, however often it is begun. */
function keyEnd(bulkId: string): string {
  return `/backfill/${bulkId}`;
}

/** Fires for one time; undefined: it is to be tried again. Rejects as fires do. */
export async function fireFor(
  triggers: Pick<Triggers, "fire">,
  trigger: TriggerRow,
  { bulkId }: Pick<BulkRow, "bulkId">,
  { executionId: itemId, dueAt: due }: BulkItem,
): Promise<BulkOutcome | undefined> {
  if (due === null) throw new Error(`item ${itemId} of backfill ${bulkId} has no time`);
  const { status, executionId, reason } = await triggers.fire(trigger, {
    key: `${due.toISOString()}${keyEnd(bulkId)}`,
    dueAt: due.getTime(),
    about: { backfill: bulkId },
    always: true,
  });
  if (status === "queued") return undefined;
  if (executionId !== null) return { executionId: itemId, state: "done", newExecutionId: executionId };
  const why = {
    code: status === "failed" ? "FIRE_FAILED" : "FIRE_SKIPPED",
    message: reason ?? `Its fire was ${status}`,
  };
  return { executionId: itemId, state: status === "failed" ? "failed" : "skipped", why };
}

function wrong(path: "from" | "to", message: string, problem: string): FlowError {
  return new FlowError("INVALID_INPUT", message, { detail: { errors: [{ path, message: problem }] } });
}

function tooMany(): FlowError {
  return new FlowError("INVALID_INPUT", `The range has more than ${BULK_MATCHED_MAX} times. Split it`);
}
