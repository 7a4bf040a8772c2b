/** What {@link whileAllowed} asks. */
export interface Recheck {
  /** Grows when a user's rights may have changed. */
  version(): number;
  /** Its value before the caller was admitted. */
  since: number;
  /** Throws `FlowError` UNAUTHENTICATED or FORBIDDEN when the caller may no longer see the answer. */
  again(): Promise<void>;
}

/** Longest time between two checks without a notice of a change. */
const AGAIN_MS = 30_000;

/**
 * Checks a long-lived stream again: before an item is sent after permissions have changed, and now and then. Without `recheck`
 * (operators, workers) it is the stream itself.
 */
export async function* whileAllowed<T>(
  source: AsyncGenerator<T | "idle">,
  recheck: Recheck | undefined,
): AsyncGenerator<T | "idle"> {
  let version = recheck?.since;
  let askedAt = performance.now();
  for await (const item of source) {
    if (recheck !== undefined && (recheck.version() !== version || performance.now() - askedAt >= AGAIN_MS)) {
      version = recheck.version();
      askedAt = performance.now();
      await recheck.again();
    }
    yield item;
  }
}
