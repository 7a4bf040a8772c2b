/** One run of a task's body: which run by its retry policy, under which claim of its command. */
export interface Effect {
  run: number;
  attempt: number;
}

/** What the scripted tools did to the world: the side effects that invariant 5 counts. */
export interface Ledger {
  /** A tool's body begins. More at a time under one claim than its loop allows is noted as a breach. */
  enter(claim: string, limit: number): void;
  leave(claim: string): void;
  /** The side effect itself. */
  record(taskRunId: string, effect: Effect): void;
  /** A payload was stored; the checksum says by which claim. */
  store(ref: string, sha256: string): void;
  /** Checksum by reference of what is stored now. */
  readonly stored: ReadonlyMap<string, string>;
  readonly effects: ReadonlyMap<string, readonly Effect[]>;
  /** Notes what must not have happened. */
  breach(what: string): void;
  /** What must not have happened: noted, since whatever a tool throws is taken for a failure of its work. */
  readonly breaches: readonly string[];
}

export function openLedger(): Ledger {
  const all = new Map<string, Effect[]>();
  const running = new Map<string, number>();
  const breaches: string[] = [];
  const stored = new Map<string, string>();
  return {
    enter(claim, limit) {
      const now = (running.get(claim) ?? 0) + 1;
      if (now > limit) breaches.push(`${now} tools ran at a time under claim ${claim}, allowed are ${limit}`);
      running.set(claim, now);
    },
    leave: (claim) => running.set(claim, (running.get(claim) ?? 1) - 1),
    record(taskRunId, effect) {
      const list = all.get(taskRunId);
      if (list === undefined) all.set(taskRunId, [effect]);
      else list.push(effect);
    },
    store: (ref, sha256) => void stored.set(ref, sha256),
    breach: (what) => void breaches.push(what),
    stored,
    effects: all,
    breaches,
  };
}
