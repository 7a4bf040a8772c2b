import assert from "node:assert/strict";

/** One run of a task's body: which run by its retry policy, under which claim of its command. */
export interface Effect {
  run: number;
  attempt: number;
}

/** What the scripted tools did to the world: the side effects that invariant 5 counts. */
export interface Ledger {
  /** A tool's body begins. Fails when more run at a time under one claim than its loop allows. */
  enter(claim: string, limit: number): void;
  leave(claim: string): void;
  /** The side effect itself. */
  record(taskRunId: string, effect: Effect): void;
  effects(): ReadonlyMap<string, readonly Effect[]>;
}

export function openLedger(): Ledger {
  const all = new Map<string, Effect[]>();
  const running = new Map<string, number>();
  return {
    enter(claim, limit) {
      const now = (running.get(claim) ?? 0) + 1;
      assert.ok(now <= limit, `${now} tools run at a time under claim ${claim}, allowed are ${limit}`);
      running.set(claim, now);
    },
    leave: (claim) => running.set(claim, (running.get(claim) ?? 1) - 1),
    record(taskRunId, effect) {
      const list = all.get(taskRunId);
      if (list === undefined) all.set(taskRunId, [effect]);
      else list.push(effect);
    },
    effects: () => all,
  };
}
