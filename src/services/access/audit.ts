import { deleteOldAudit, insertAudit } from "../../repositories/access/audit.ts";
import { type AuditFilter, type AuditRow, listAudit } from "../../repositories/access/audit-list.ts";
import { lacksRight } from "../../repositories/access/auth-database-account.ts";
import type { Database } from "../../repositories/database/database.ts";
import type { AuditEntry } from "../../schema/words/audit-entry.ts";
import { defined } from "../../schema/words/defined.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import type { Listed, PageQuery } from "../catalog/catalog.ts";
import { encodeCursor, idCursor } from "../pagination-cursor.ts";
import { verifyAudit } from "./audit-chain.ts";
import { createPending, createUnknownCallers } from "./pending-rows.ts";

/** Who calls, and why they may: what an audit row takes from the request. */
export type Caller = Pick<
  AuditEntry,
  | "actorKind"
  | "actor"
  | "userId"
  | "issuer"
  | "subject"
  | "rule"
  | "address"
  | "requestId"
  | "executionId"
  | "commandId"
  | "attempt"
>;

/** The server itself: what it does at its start or by the clock. */
export const SYSTEM: Caller = { actorKind: "system", rule: "system" };

/** The row of something that a caller did. */
export function audited(
  caller: Caller,
  action: string,
  resource: string,
  { result = "allow", detail }: { result?: AuditEntry["result"]; detail?: JsonObject } = {},
): AuditEntry {
  return { ...caller, action, resource, result, ...defined({ detail }) };
}

const recorded = new WeakSet<object>();

/** The same error, of a refusal that has its row in the log: a call has one. */
export function inAuditLog(error: unknown): unknown {
  if (error instanceof Error) recorded.add(error);
  return error;
}

/** Whether a refusal has its row. */
export function isInAuditLog(error: unknown): boolean {
  return error instanceof Error && recorded.has(error);
}

/** The audit log of this server. */
export interface Audit {
  /** Written when it resolves. What gives out or changes something is written before that is answered. */
  record(...entries: readonly AuditEntry[]): Promise<void>;
  /**
   * A refusal, soon: callers without a token could otherwise keep the database busy. Of more than {@link REFUSALS_MAX} in a
   * second the rest is counted in one row.
   */
  refused(entry: AuditEntry): void;
  /**
   * Something that was allowed and changed nothing, soon: who looked at what. The same within {@link NOTED_AGAIN_MS} is one row; of
   * more than {@link NOTED_MAX} in a second the rest is counted in one row.
   */
  noted(entry: AuditEntry): void;
  /**
   * A call of an unknown caller. Those of one address and minute are one row, written when the minute is over, with their number:
   * callers without a token decide how many there are.
   */
  unauthenticated(entry: AuditEntry): void;
  /** Newest first. Throws `FlowError` INVALID_INPUT for a cursor of another list. */
  list(filter: AuditFilter, page: PageQuery): Promise<Listed<AuditRow>>;
  /** See {@link verifyAudit}. */
  verify: ReturnType<typeof verifyAudit>;
  /** Deletes rows that were kept for long enough; gives how many. */
  deleteOld(): Promise<number>;
  /** Writes what is still to be written. */
  close(): Promise<void>;
}

/** What {@link createAudit} needs. */
export interface AuditDeps {
  database: Database;
  /** How long rows are kept. */
  days: number;
  /** Called with the number of refusals that could not be written. */
  onLost(error: unknown, rows: number): void;
}

/** Refusals of one second that get a row each. */
export const REFUSALS_MAX = 50;
/** What is noted in one second and gets a row each. */
export const NOTED_MAX = 500;
/** Pages that look again every other second would otherwise write a row each time. */
const NOTED_AGAIN_MS = 60_000;
/** Limit of the memory for that: some megabytes. */
const NOTED_KNOWN_MAX = 10_000;
const FLUSH_MS = 1_000;
/** Rows of one statement: some 10 ms, in which it holds a chain. */
const ROWS_MAX = 500;
/** One run of retention: 250,000 rows at most, in short transactions. In five minutes no more are written than that. */
const DELETE_ROWS = 5_000;
const DELETE_ROUNDS_MAX = 50;

/** Opens the log. */
export function createAudit({ database, days, onLost }: AuditDeps): Audit {
  const refusals = createPending(REFUSALS_MAX);
  const notes = createPending(NOTED_MAX);
  const known = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();

  const flush = (counted: readonly AuditEntry[] = []) => {
    timer = undefined;
    const entries = [...counted, ...refusals.take("deny"), ...notes.take("allow")];
    for (let at = 0; at < entries.length; at += ROWS_MAX) {
      const some = entries.slice(at, at + ROWS_MAX);
      writing = writing.then(() => insertAudit(database, some)).catch((error) => onLost(error, some.length));
    }
    return writing;
  };
  const unknown = createUnknownCallers(() => void flushAll());
  const flushAll = () => flush(unknown.take());
  const soon = () => {
    timer ??= setTimeout(() => void flush(), FLUSH_MS).unref();
  };
  return {
    record: (...entries) => insertAudit(database, entries),
    refused(entry) {
      refusals.add(entry);
      soon();
    },
    noted(entry) {
      const { actorKind, userId, actor, action, resource, address } = entry;
      const key = JSON.stringify([actorKind, userId, actor, action, resource, address]);
      const now = performance.now();
      if (now - (known.get(key) ?? Number.NEGATIVE_INFINITY) < NOTED_AGAIN_MS) return;
      if (known.size >= NOTED_KNOWN_MAX) known.clear();
      known.set(key, now);
      notes.add(entry);
      soon();
    },
    unauthenticated: unknown.add,
    async list(filter, { limit, cursor }) {
      const key = cursor === undefined ? {} : { cursor: idCursor(cursor) };
      const { items, next } = await listAudit(database, filter, { limit, ...key });
      return { items, nextCursor: next === undefined ? null : encodeCursor(next) };
    },
    verify: verifyAudit(database),
    async deleteOld() {
      let deleted = 0;
      for (let round = 0; round < DELETE_ROUNDS_MAX; round += 1) {
        const count = await deleteOldAudit(database, days, DELETE_ROWS).catch(noneIfRefused);
        deleted += count;
        if (count < DELETE_ROWS) break;
      }
      return deleted;
    },
    async close() {
      clearTimeout(timer);
      await flushAll();
    },
  };
}

/** An account that may only insert leaves the deleting to the log's owner (docs/operations.md). */
function noneIfRefused(error: unknown): number {
  if (lacksRight(error)) return 0;
  throw error;
}
