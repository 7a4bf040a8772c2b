import type { ChangedSessions, SessionEntry } from "../../schema/api/gateway.ts";

/** Decides which cache entries are older than a change. */
export interface Freshness {
  /** Changes are received from now on, or (`false`) no longer. */
  onListening(isListening: boolean): void;
  isListening(): boolean;
  changed(change: ChangedSessions): void;
  /** `elsewhere`: the entry was made by another process, whose clock may differ. */
  isFresh(tokenSha256: string, entry: SessionEntry, made: "here" | "elsewhere"): boolean;
}

/** How far the clocks of two gateways may be apart. */
const SKEW_MS = 5_000;
/** Changes that are remembered one by one; with more of them everything counts as changed. */
const CHANGES_MAX = 10_000;

/**
 * An entry is fresh if it is younger than `ageMs`, its session has not ended, and the server was queried for it after this
 * process started to receive changes and after the last change that was, or may have been, of its session.
 */
export function createFreshness(now: () => number, ageMs: number): Freshness {
  let since: number | undefined;
  let changedAt = new Map<string, number>();
  const prune = (at: number) => {
    changedAt = new Map([...changedAt].filter(([, time]) => time > at - ageMs - 2 * SKEW_MS));
    if (changedAt.size <= CHANGES_MAX) return;
    changedAt.clear();
    since = at;
  };
  return {
    onListening(isListening) {
      since = isListening ? now() : undefined;
      changedAt.clear();
    },
    isListening: () => since !== undefined,
    changed(change) {
      const at = now();
      if (change !== "all") for (const tokenSha256 of change) changedAt.set(tokenSha256, at);
      else if (since !== undefined) since = at;
      if (changedAt.size > CHANGES_MAX) prune(at);
    },
    isFresh(tokenSha256, { askedAt, expiresAt }, made) {
      const at = now();
      const asked = made === "here" ? askedAt : askedAt - SKEW_MS;
      if (since === undefined || asked <= since || at - askedAt > ageMs || expiresAt <= at) return false;
      return asked > (changedAt.get(tokenSha256) ?? 0);
    },
  };
}
