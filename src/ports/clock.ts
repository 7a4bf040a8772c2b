/** Time as a part: the system's for real runs, a stepped one for tests that must not wait. */
export interface Clock {
  /** Milliseconds since 1970 (UTC). */
  now(): number;
  /** Resolves after `ms` milliseconds; rejects with the signal's reason when it aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}
