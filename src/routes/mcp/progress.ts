import type { CallProgress } from "../../services/mcp/call-progress.ts";

/** Notices of one call that are sent as they come. */
const AT_ONCE_MAX = 100;
/** After these, one at most in so many milliseconds: a loop of thousands of rounds is nothing to read along. */
const PACE_MS = 1_000;

/** Says of each notice whether it is sent. */
export function createPace(now: () => number = () => performance.now()): () => boolean {
  let count = 0;
  let sentAt = Number.NEGATIVE_INFINITY;
  return () => {
    if (count >= AT_ONCE_MAX && now() - sentAt < PACE_MS) return false;
    count += 1;
    sentAt = now();
    return true;
  };
}

/** A notice of progress in the protocol's words. */
export function progressNotice(progressToken: string | number, { progress, message }: CallProgress) {
  const params = { progressToken, progress, total: 100, message };
  return { method: "notifications/progress" as const, params };
}
