import { type AuditEntry, deleteOldAudit, insertAudit } from "../repositories/audit.ts";
import type { Database } from "../repositories/database.ts";
import type { JsonObject } from "../schema/json.ts";

/** Who calls, and why they may: what an audit row takes from the request. */
export type Caller = Pick<AuditEntry, "actorKind" | "actor" | "userId" | "rule" | "address" | "requestId">;

/** The server itself: what it does at its start or by the clock. */
export const SYSTEM: Caller = { actorKind: "system", rule: "system" };

/** The row of something that a caller did. */
export function audited(
  caller: Caller,
  action: string,
  resource: string,
  { result = "allow", detail }: { result?: AuditEntry["result"]; detail?: JsonObject } = {},
): AuditEntry {
  return { ...caller, action, resource, result, ...(detail !== undefined && { detail }) };
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
  /** Told of refusals that could not be written, with their number. */
  onLost(error: unknown, rows: number): void;
}

/** Refusals of one second that get a row each. */
export const REFUSALS_MAX = 50;
const FLUSH_MS = 1_000;
/** One run of retention: 250,000 rows at most, in short transactions. In five minutes no more are written than that. */
const DELETE_ROWS = 5_000;
const DELETE_ROUNDS_MAX = 50;

/** Opens the log. */
export function createAudit({ database, days, onLost }: AuditDeps): Audit {
  let refusals: AuditEntry[] = [];
  let more = 0;
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();

  const flush = () => {
    timer = undefined;
    const entries = more === 0 ? refusals : [...refusals, overflow(more)];
    refusals = [];
    more = 0;
    writing = writing.then(() => insertAudit(database, entries)).catch((error) => onLost(error, entries.length));
    return writing;
  };
  return {
    record: (...entries) => insertAudit(database, entries),
    refused(entry) {
      if (refusals.length < REFUSALS_MAX) refusals.push(entry);
      else more += 1;
      timer ??= setTimeout(() => void flush(), FLUSH_MS).unref();
    },
    async deleteOld() {
      let deleted = 0;
      for (let round = 0; round < DELETE_ROUNDS_MAX; round += 1) {
        const count = await deleteOldAudit(database, days, DELETE_ROWS);
        deleted += count;
        if (count < DELETE_ROWS) break;
      }
      return deleted;
    },
    async close() {
      clearTimeout(timer);
      await flush();
    },
  };
}

/** One row for all that had no room. */
function overflow(count: number): AuditEntry {
  const more = { actorKind: "anonymous", action: "refused", resource: "*", rule: "access", result: "deny" } as const;
  return { ...more, detail: { count } };
}
