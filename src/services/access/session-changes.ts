import type { SessionChange, SessionChangeHandlers } from "../../repositories/access/session-changes.ts";
import { FlowError } from "../../schema/words/errors.ts";

/** Changes since the last look: of these tokens (SHA-256, hex), or perhaps of all. */
export type ChangedSessions = { tokens: string[] } | "all";

/** Subscribers to ended or changed sessions, so that no cache acts on old ones. */
export interface SessionChanges extends SessionChangeHandlers {
  /**
   * Changes from now on; `all` first, because earlier changes are unknown. Ends when `signal` is aborted, and when this server
   * can no longer receive changes: then caches must be dropped. `idle` now and then. Throws `FlowError` UNAVAILABLE while it
   * cannot receive changes.
   */
  follow(signal: AbortSignal): Promise<AsyncGenerator<ChangedSessions | "idle">>;
  /** Grows with each change, and when the subscription begins or ends: the same number means that nothing was missed. */
  version(): number;
}

/** Most tokens that wait for one follower. With more, all are said to have changed. */
const WAITING_MAX = 1_000;
const IDLE_MS = 1_000;

/** Changes that one follower has not got yet; `over` once this server has missed something. */
interface Follower {
  waiting: Set<string> | "all" | "over";
  wake(): void;
}

/** An empty list of changes, not yet subscribed. */
export function createSessionChanges(): SessionChanges {
  const followers = new Set<Follower>();
  let isHearing = false;
  let version = 0;
  const wakeAll = () => {
    version += 1;
    for (const follower of followers) follower.wake();
  };
  return {
    version: () => version,
    began() {
      isHearing = true;
      wakeAll();
    },
    lost() {
      isHearing = false;
      // For good, also where hearing begins again before they look.
      for (const follower of followers) follower.waiting = "over";
      wakeAll();
    },
    changed(change) {
      for (const follower of followers) add(follower, change);
      wakeAll();
    },
    async follow(signal) {
      if (!isHearing) {
        const message =
          "This server does not hear of changed sessions at the moment. Ask for each one, and try again later";
        throw new FlowError("UNAVAILABLE", message);
      }
      const follower: Follower = { waiting: "all", wake: () => undefined };
      followers.add(follower);
      return changesOf(follower, signal, () => followers.delete(follower));
    },
  };
}

function add(follower: Follower, change: SessionChange): void {
  if (typeof follower.waiting === "string") return;
  if (change === "all" || follower.waiting.size >= WAITING_MAX) follower.waiting = "all";
  else follower.waiting.add(change.tokenSha256);
}

async function* changesOf(
  follower: Follower,
  signal: AbortSignal,
  leave: () => void,
): AsyncGenerator<ChangedSessions | "idle"> {
  try {
    while (!signal.aborted) {
      const { waiting } = follower;
      if (waiting === "over") return;
      if (waiting !== "all" && waiting.size === 0) {
        if (!(await wakened(follower, signal))) yield "idle";
        continue;
      }
      follower.waiting = new Set();
      yield waiting === "all" ? waiting : { tokens: [...waiting] };
    }
  } finally {
    leave();
  }
}

/** Waits until the follower is woken, {@link IDLE_MS} at most. False on a timeout. */
function wakened(follower: Follower, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (isWoken: boolean) => {
      clearTimeout(timer);
      signal.removeEventListener("abort", woken);
      follower.wake = () => undefined;
      resolve(isWoken);
    };
    const woken = () => end(true);
    const timer = setTimeout(end, IDLE_MS, false);
    signal.addEventListener("abort", woken, { once: true });
    follower.wake = woken;
  });
}
