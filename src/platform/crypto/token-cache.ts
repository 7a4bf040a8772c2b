/** An access token, and until when it may be used, milliseconds since 1970. */
interface AccessToken {
  token: string;
  expiresAt: number;
}

/** Tokens by key. */
export interface TokenCache {
  /** The cached token; else that of `fetch`, which runs once however many callers ask. Errors are not cached. */
  get(key: string, fetch: () => Promise<AccessToken>): Promise<AccessToken>;
  /** Drops a token, whatever key it is kept under. */
  forget(token: string): void;
}

/** Tokens that are kept; the least recently used one goes. */
const KEPT_MAX = 1_000;
/** A token is not handed out in its last minute, nor in the last tenth of a shorter life: it is to arrive before it ends. */
const EARLY_MS = 60_000;
const EARLY_PART = 0.1;

/** Keeps tokens until shortly before they end. */
export function createTokenCache(now: () => number): TokenCache {
  const kept = new Map<string, AccessToken & { until: number }>();
  const pending = new Map<string, Promise<AccessToken>>();
  return {
    async get(key, fetch) {
      const known = kept.get(key);
      if (known !== undefined) {
        kept.delete(key);
        if (now() < known.until) {
          kept.set(key, known);
          return known;
        }
      }
      const underWay = pending.get(key);
      if (underWay !== undefined) return await underWay;
      const fetched = fetch()
        .then((token) => {
          kept.set(key, { ...token, until: usableUntil(token, now()) });
          const [oldest] = kept.keys();
          if (kept.size > KEPT_MAX && oldest !== undefined) kept.delete(oldest);
          return token;
        })
        .finally(() => pending.delete(key));
      pending.set(key, fetched);
      return await fetched;
    },
    forget(token) {
      for (const [key, entry] of kept) if (entry.token === token) kept.delete(key);
    },
  };
}

function usableUntil({ expiresAt }: AccessToken, now: number): number {
  return expiresAt - Math.min(EARLY_MS, Math.max(0, expiresAt - now) * EARLY_PART);
}
