import type { AuditEntry } from "../../schema/words/audit-entry.ts";
import { FlowError, messageOf } from "../../schema/words/errors.ts";
import { type Audit, isInAuditLog } from "../../services/access/audit.ts";
import type { StartLog } from "../../services/orchestration/orchestrator.ts";

/** What a decision turned out to be about. */
export interface DecidedAbout {
  executionId?: string;
}

/**
 * What was decided about one call: one row of the audit log for each action on each resource. What was allowed is written when nothing
 * else can refuse the call any more; a refusal stands alone.
 */
export interface Decisions extends StartLog {
  /** What was allowed and is not written yet. */
  readonly open: readonly unknown[];
  /** `isLook`: it changes nothing. */
  allowed(entry: AuditEntry, isLook: boolean): void;
  refused(entry: AuditEntry): void;
  /** Writes what was allowed: before it is done, where it changes something. */
  settle(about?: DecidedAbout): Promise<void>;
  /** The call failed. A refusal that is not in the log yet is written, as one of `otherwise` where nothing was allowed before. */
  failed(error: unknown, otherwise?: () => AuditEntry): Promise<void>;
}

/** What writes them. */
export type DecisionLog = Pick<Audit, "record" | "refused" | "noted">;

/** The decisions about one call. */
export function createDecisions(audit: DecisionLog): Decisions {
  const open: { entry: AuditEntry; isLook: boolean }[] = [];
  /** What is being written with a start. */
  let starting: typeof open = [];
  const known = new Set<string>();
  let isRefused = false;
  const write = async (change: (entry: AuditEntry) => AuditEntry) => {
    const changes: AuditEntry[] = [];
    for (const { entry, isLook } of open.splice(0)) {
      if (isLook) audit.noted(entry);
      else changes.push(change(entry));
    }
    await audit.record(...changes);
  };
  const about = (decided: DecidedAbout) => {
    for (const one of open) one.entry = { ...one.entry, ...decided };
  };
  return {
    open,
    allowed(entry, isLook) {
      const key = `${entry.action} ${entry.resource}`;
      if (known.has(key)) return;
      known.add(key);
      open.push({ entry, isLook });
    },
    refused(entry) {
      isRefused = true;
      open.length = 0;
      audit.refused(entry);
    },
    rows(executionId) {
      about({ executionId });
      const all = open.splice(0);
      open.push(...all.filter(({ isLook }) => isLook));
      starting = all.filter(({ isLook }) => !isLook);
      return starting.map(({ entry }) => entry);
    },
    ended(isWritten) {
      if (!isWritten) open.unshift(...starting);
      starting = [];
    },
    async settle(decided = {}) {
      about(decided);
      await write((entry) => entry);
    },
    async failed(error, otherwise) {
      const code = error instanceof FlowError ? error.code : "INTERNAL";
      if (code !== "FORBIDDEN" && code !== "claim_required")
        return await write((entry) => ({ ...entry, result: "error", detail: { code } }));
      const entry = open[0]?.entry ?? otherwise?.();
      open.length = 0;
      if (!isRefused && !isInAuditLog(error) && entry !== undefined) {
        this.refused({ ...entry, result: "deny", rule: messageOf(error) });
      }
    },
  };
}
