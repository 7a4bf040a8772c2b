import type { KeyValueStore } from "../../ports/key-value.ts";
import {
  type ChangedSessions,
  decodeSession,
  encodeSession,
  type KnownSession,
  type SessionEntry,
} from "../../schema/api/gateway.ts";
import { createFreshness } from "./session-cache.ts";

/**
 * Checks sessions. The server's database is the truth. Its answers are cached in memory and in the broker's bucket `sessions`
 * while this gateway receives every change; otherwise every check queries the server.
 */
export interface Sessions {
  /** The session of this token's SHA-256, or undefined when it is not valid. Rejects with the error of the server's call. */
  check(tokenSha256: string, address: string | undefined): Promise<KnownSession | undefined>;
  /** Something changed: what is cached of it counts no more. */
  changed(change: ChangedSessions): void;
  /** Changes are received from now on, or (`false`) no longer. */
  onListening(isListening: boolean): void;
}

/** What {@link createSessions} needs. */
export interface SessionsDeps {
  /** Asks the server. */
  ask(tokenSha256: string, address: string | undefined): Promise<KnownSession | undefined>;
  /** The broker's; undefined: memory alone. */
  store: KeyValueStore | undefined;
  /** Milliseconds since 1970. */
  now(): number;
  /** Where the answer about a session came from. */
  onChecked(by: "memory" | "broker" | "server"): void;
  /** The broker's store failed: this costs time, not correctness. */
  onFault(error: unknown): void;
}

/** Bucket of the broker's key-value store (interface specification, Components). Its keys are the SHA-256 of tokens. */
const BUCKET = "sessions";
/**
 * How long an answer is believed. A session that is used is noted in the database no more often than this, so it must be small
 * beside the time that a session may idle.
 */
export const SESSION_AGE_MS = 60_000;
/** Most sessions in memory, some 500 bytes each. Beyond that the oldest is dropped. */
const ENTRIES_MAX = 50_000;

/** Not yet subscribed, nothing known. */
export function createSessions(deps: SessionsDeps): Sessions {
  const { store, now } = deps;
  const known = new Map<string, SessionEntry>();
  const asking = new Map<string, Promise<KnownSession | undefined>>();
  const fresh = createFreshness(now, SESSION_AGE_MS);

  const remember = (tokenSha256: string, entry: SessionEntry) => {
    known.delete(tokenSha256);
    known.set(tokenSha256, entry);
    if (known.size > ENTRIES_MAX) known.delete(known.keys().next().value ?? "");
  };

  const look = async (tokenSha256: string, address: string | undefined): Promise<KnownSession | undefined> => {
    const found = await storedSession(deps, fresh, tokenSha256);
    if (found !== undefined) {
      deps.onChecked("broker");
      remember(tokenSha256, found);
      return found;
    }
    deps.onChecked("server");
    const askedAt = now();
    const session = await deps.ask(tokenSha256, address);
    if (session === undefined) return undefined;
    const entry = { ...session, askedAt };
    // Something may have changed while the server was asked.
    if (fresh.isFresh(tokenSha256, entry, "here")) {
      remember(tokenSha256, entry);
      store?.put(BUCKET, tokenSha256, encodeSession(entry), { ttlMs: SESSION_AGE_MS }).catch(deps.onFault);
    }
    return session;
  };

  return {
    async check(tokenSha256, address) {
      const entry = known.get(tokenSha256);
      if (entry !== undefined && fresh.isFresh(tokenSha256, entry, "here")) {
        deps.onChecked("memory");
        return entry;
      }
      known.delete(tokenSha256);
      // Who comes while the server is asked takes the same answer, but none that was begun before the last change.
      const begun = fresh.isListening() ? asking.get(tokenSha256) : undefined;
      if (begun !== undefined) return await begun;
      const looking = look(tokenSha256, address);
      asking.set(tokenSha256, looking);
      try {
        return await looking;
      } finally {
        if (asking.get(tokenSha256) === looking) asking.delete(tokenSha256);
      }
    },
    changed(change) {
      fresh.changed(change);
      asking.clear();
      if (change === "all") return known.clear();
      for (const key of change) {
        known.delete(key);
        store?.delete(BUCKET, key).catch(deps.onFault);
      }
    },
    onListening(isListening) {
      fresh.onListening(isListening);
      known.clear();
      asking.clear();
    },
  };
}

/** The broker's entry of a session, while it may be believed. */
async function storedSession(
  { store, onFault }: SessionsDeps,
  fresh: ReturnType<typeof createFreshness>,
  tokenSha256: string,
): Promise<SessionEntry | undefined> {
  if (store === undefined || !fresh.isListening()) return undefined;
  try {
    const found = await store.get(BUCKET, tokenSha256);
    const entry = found === undefined ? undefined : decodeSession(found);
    return entry !== undefined && fresh.isFresh(tokenSha256, entry, "elsewhere") ? entry : undefined;
  } catch (error) {
    onFault(error);
    return undefined;
  }
}
