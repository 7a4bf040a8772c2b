/** Time as a part: the system's for real runs, a stepped one for tests that must not wait. */
export interface Clock {
  /** Milliseconds since 1970 (UTC). */
  now(): number;
  /** Resolves after `ms` milliseconds; rejects with the signal's reason when it aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /**
   * Calls `action` after `ms` milliseconds, unless the function that is returned was called before. Default: by {@link Clock.sleep},
   * which costs a signal and an error for each timer that is cancelled.
   */
  timer?(ms: number, action: () => void): () => void;
  /**
   * Milliseconds that never go back, for how long work has kept the process from all else. Default `performance.now()`; where
   * time is stepped it stands still, because work takes none.
   */
  busy?(): number;
}

/** A moment on two clocks, in milliseconds: a monotonic one that stands still while the machine sleeps, and the wall clock. */
export interface Moment {
  steady: number;
  wall: number;
}
