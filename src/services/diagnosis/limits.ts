/** What counts as wrong, and how far the doctor looks. Times are milliseconds. */
export interface DoctorLimits {
  /** Silence after which a worker, a command, a batch or an execution counts as stale. */
  staleMs: number;
  /** Age of a claim that is too long for a healthy worker too. */
  hardTimeoutMs: number;
  /** A transaction that does nothing for this long keeps every dead row since its beginning. */
  idleTransactionMs: number;
  /** Dead rows from which a table is looked at, and their share of the live ones that is too much. */
  deadRowsMin: number;
  deadRowsShare: number;
  /** Longest statement of a check. */
  statementMs: number;
}

/**
 * The limits where nothing else is asked for. Dead rows: autovacuum begins at a fifth of a table; at half of it, and ten
 * thousand, it does not keep up.
 */
export const DOCTOR_LIMITS: DoctorLimits = {
  staleMs: 60_000,
  hardTimeoutMs: 1_800_000,
  idleTransactionMs: 300_000,
  deadRowsMin: 10_000,
  deadRowsShare: 0.5,
  statementMs: 5_000,
};

/** Rows that a check looks at, and findings of it. */
export const ROWS_MAX = 1_000;
/** Findings of one check; the rest is in the count of the last one. */
export const FINDINGS_MAX = 20;
