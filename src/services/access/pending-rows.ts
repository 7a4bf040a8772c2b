import type { AuditEntry } from "../../schema/words/audit-entry.ts";

/** Calls of unknown callers, counted until they are written: those of one address in one row. */
export interface UnknownCallers {
  add(entry: AuditEntry): void;
  /** The rows so far, each with its `count`; counting begins anew. */
  take(): AuditEntry[];
}

const MINUTE_MS = 60_000;
/** Addresses that are counted apart; the rest is one row. */
export const UNKNOWN_ADDRESSES_MAX = 1_000;

/** Calls `onMinute` when a minute is over, if it has any. */
export function createUnknownCallers(onMinute: () => void): UnknownCallers {
  const known = new Map<string, { entry: AuditEntry; count: number }>();
  let timer: NodeJS.Timeout | undefined;
  return {
    add(entry) {
      const { address = "", ...nowhere } = entry;
      const isCounted = known.has(address) || known.size < UNKNOWN_ADDRESSES_MAX;
      const key = isCounted ? address : "*";
      const found = known.get(key);
      if (found === undefined) known.set(key, { entry: isCounted ? entry : nowhere, count: 1 });
      else found.count += 1;
      timer ??= setTimeout(onMinute, MINUTE_MS).unref();
    },
    take() {
      clearTimeout(timer);
      timer = undefined;
      const rows = [...known.values()].map(({ entry, count }) => ({ ...entry, detail: { ...entry.detail, count } }));
      known.clear();
      return rows;
    },
  };
}

/** Entries that wait to be written, at most `max`; the rest is counted. */
export function createPending(max: number) {
  let entries: AuditEntry[] = [];
  let more = 0;
  return {
    add(entry: AuditEntry) {
      if (entries.length < max) entries.push(entry);
      else more += 1;
    },
    /** All of them, with one for those that had no room. */
    take(result: "allow" | "deny"): AuditEntry[] {
      const taken = more === 0 ? entries : [...entries, overflow(result, more)];
      entries = [];
      more = 0;
      return taken;
    },
  };
}

/** One row for all that had no room. */
function overflow(result: "allow" | "deny", count: number): AuditEntry {
  const action = result === "deny" ? "refused" : "noted";
  return { actorKind: "anonymous", action, resource: "*", rule: "access", result, detail: { count } };
}
