import type { Database } from "../../repositories/database/database.ts";
import { reserveIds } from "../../repositories/database/ids.ts";
import {
  type DeliveryRow,
  listDeliveries,
  type NewDelivery,
  trimDeliveries,
  writeDeliveries,
} from "../../repositories/triggers/deliveries.ts";
import {
  type DeliveryVerdict,
  HOOK_BYTES_MAX,
  HOOK_PER_SECOND,
  REFUSED_VERDICTS,
} from "../../schema/triggers/deliveries.ts";
import { defined } from "../../schema/words/defined.ts";
import { type ErrorCode, FlowError } from "../../schema/words/errors.ts";
import type { Listed, PageQuery } from "../catalog/catalog.ts";
import { encodeCursor, idCursor } from "../pagination-cursor.ts";

/** A delivery of a trigger, from its beginning until it is noted. */
export interface SeenDelivery {
  /** Its body was read. */
  size(bytes: number): void;
  /** What its body means. Throws as `parse` does, and notes that. */
  parsed<T>(parse: () => T): T;
  /** It was taken, or its templates have failed. */
  came(verdict: DeliveryVerdict, about: Pick<NotedDelivery, "reason" | "executionId">): void;
  /** Throws the error, and notes it where it says something of the delivery. `reason`: for the trigger's owner alone. */
  refuse(error: unknown, reason?: string): never;
}

/** Sees a delivery that has come for a trigger. */
export function seeDelivery(
  { note }: Pick<DeliveryLog, "note">,
  about: Pick<NotedDelivery, "triggerId" | "address">,
): SeenDelivery {
  let bytes: number | undefined;
  const refuse = (error: unknown, reason?: string): never => {
    const why = error instanceof FlowError ? REFUSALS[error.code] : undefined;
    if (why !== undefined) note({ ...about, bytes, verdict: why.verdict, reason: reason ?? why.reason });
    throw error;
  };
  return {
    size(length) {
      bytes = length;
    },
    parsed(parse) {
      try {
        return parse();
      } catch (error) {
        return refuse(error);
      }
    },
    came: (verdict, more) => note({ ...about, bytes, verdict, ...more }),
    refuse,
  };
}

/** Refusals by their codes; others say nothing of the delivery. Words of our own: a parser's would quote the body. */
const REFUSALS: Partial<Record<ErrorCode, { verdict: DeliveryVerdict; reason: string }>> = {
  RATE_LIMITED: { verdict: "rate_limited", reason: `More than ${HOOK_PER_SECOND} came in a second` },
  TOO_LARGE: { verdict: "too_large", reason: `Its body is longer than ${HOOK_BYTES_MAX.toLocaleString("en")} bytes` },
  UNAUTHENTICATED: { verdict: "not_verified", reason: "It does not prove who sent it" },
  INVALID_INPUT: { verdict: "unreadable", reason: "Its body broke off, or is not what its content type says" },
};

/** What is noted of a delivery: nothing of its body, and no header. */
export interface NotedDelivery {
  triggerId: string;
  verdict: DeliveryVerdict;
  reason?: string | undefined;
  address?: string | undefined;
  bytes?: number | undefined;
  executionId?: string | undefined;
}

/**
 * The last deliveries of webhooks with what came of them, for people. Who sends decides how many there are, so what is written does not grow
 * with them: see {@link ROWS_PER_MINUTE} and {@link KEPT}. A server that dies loses those of its last second.
 */
export interface DeliveryLog {
  /** Written within a second. */
  note(delivery: NotedDelivery): void;
  /** Newest first. Throws `FlowError` INVALID_INPUT for a cursor of another list. */
  list(triggerId: string, page: PageQuery & { isRefused?: boolean }): Promise<Listed<DeliveryRow>>;
  /** Writes what is still to be written. */
  close(): Promise<void>;
}

/** What {@link createDeliveryLog} needs. */
export interface DeliveryLogDeps {
  database: Database;
  /** Milliseconds since 1970. */
  now(): number;
  /** Called with the number of rows that could not be written. */
  onLost(error: unknown, rows: number): void;
}

/** Deliveries of a trigger and verdict that have a row of their own in a minute, on each server; the rest of the minute is one row. */
export const ROWS_PER_MINUTE = 20;
/** Rows of a trigger that are kept of deliveries that were taken, and as many of refused ones: a flood of these leaves the others. */
export const KEPT = 100;
/** Pairs of trigger and verdict of one minute that are noted, some 300 bytes each; only triggers that exist have any. */
const GROUPS_MAX = 10_000;
const MINUTE_MS = 60_000;
const FLUSH_MS = 1_000;
/** Rows that are written in a second, with one statement of some milliseconds, however many triggers are called. */
const ROWS_MAX = 500;
/** Rows that wait for their turn; what comes then is not noted. */
const PENDING_MAX = 10 * ROWS_MAX;
/** Longest reason and address that are kept, in characters. */
const TEXT_MAX = 300;

/** What comes of one verdict of a trigger in a minute. */
interface Group {
  minute: number;
  rows: number;
  /** What has no row of its own. */
  rest?: Pending;
}

/** A row that is to be written, again when more has come to it; it gets its id with the first time. */
type Pending = Omit<NewDelivery, "deliveryId"> & { deliveryId?: string };

/** Opens the log. */
export function createDeliveryLog({ database, now, onLost }: DeliveryLogDeps): DeliveryLog {
  const groups = new Map<string, Group>();
  const pending = new Set<Pending>();
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();

  const flush = () => {
    const rows = [...pending].slice(0, ROWS_MAX);
    for (const row of rows) pending.delete(row);
    writing = writing.then(() => write(database, rows)).catch((error) => onLost(error, rows.length));
    timer = undefined;
    if (pending.size > 0) soon();
    return writing;
  };
  const soon = () => {
    timer ??= setTimeout(() => void flush(), FLUSH_MS).unref();
  };
  return {
    note(delivery) {
      const at = now();
      if (pending.size >= PENDING_MAX) return;
      const group = groupOf(groups, delivery, Math.floor(at / MINUTE_MS));
      if (group === undefined) return;
      pending.add(rowFor(group, delivery, at));
      soon();
    },
    async list(triggerId, { limit, cursor, isRefused }) {
      const key = cursor === undefined ? {} : { cursor: idCursor(cursor) };
      const { items, next } = await listDeliveries(
        database,
        { triggerId, ...defined({ isRefused }) },
        { limit, ...key },
      );
      return { items, nextCursor: next === undefined ? null : encodeCursor(next) };
    },
    async close() {
      while (pending.size > 0) await flush();
      clearTimeout(timer);
      await writing;
    },
  };
}

/** The group of a delivery in this minute; undefined where there are too many. */
function groupOf(groups: Map<string, Group>, { triggerId, verdict }: NotedDelivery, minute: number): Group | undefined {
  const key = `${triggerId}/${verdict}`;
  const known = groups.get(key);
  if (known?.minute === minute) return known;
  // Those of earlier minutes say nothing any more. A minute has one such walk for each thousands of groups.
  if (known === undefined && groups.size >= GROUPS_MAX)
    for (const [other, group] of groups) if (group.minute !== minute) groups.delete(other);
  if (known === undefined && groups.size >= GROUPS_MAX) return undefined;
  const group: Group = { minute, rows: 0 };
  groups.set(key, group);
  return group;
}

function rowFor(group: Group, delivery: NotedDelivery, at: number): Pending {
  if (group.rows < ROWS_PER_MINUTE) {
    group.rows += 1;
    return newRow(delivery, at);
  }
  const { rest } = group;
  if (rest === undefined) {
    group.rest = newRow(delivery, at);
    return group.rest;
  }
  const { address, bytes, reason, executionId } = newRow(delivery, at);
  rest.count += 1;
  rest.lastAt = at;
  if (rest.address !== address) rest.address = null;
  if (rest.reason !== reason) rest.reason = null;
  if (rest.executionId !== executionId) rest.executionId = null;
  if (bytes !== null) rest.bytes = Math.max(rest.bytes ?? 0, bytes);
  return rest;
}

function newRow({ triggerId, verdict, reason, address, bytes, executionId }: NotedDelivery, at: number): Pending {
  return {
    ...{ triggerId, verdict, isRefused: REFUSED.has(verdict), reason: bounded(reason), address: bounded(address) },
    ...{ bytes: bytes ?? null, executionId: executionId ?? null, count: 1, firstAt: at, lastAt: at },
  };
}

const REFUSED: ReadonlySet<string> = new Set(REFUSED_VERDICTS);

/** What PostgreSQL stores: neither U+0000 nor half of a surrogate pair. */
function bounded(text: string | undefined): string | null {
  return text?.slice(0, TEXT_MAX).replace(/\u0000|\p{Surrogate}/gu, "\ufffd") ?? null;
}

async function write(database: Database, rows: readonly Pending[]): Promise<void> {
  const unnumbered = rows.filter(({ deliveryId }) => deliveryId === undefined);
  const ids = unnumbered.length === 0 ? [] : await reserveIds(database, unnumbered.length);
  for (const [index, row] of unnumbered.entries()) row.deliveryId = ids[index] ?? "";
  await writeDeliveries(database, rows as readonly NewDelivery[]);
  await trimDeliveries(database, [...new Set(rows.map(({ triggerId }) => triggerId))], KEPT);
}
