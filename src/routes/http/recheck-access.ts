/** What {@link whileAllowed} asks. */
export interface Recheck {
  /** Grows when somebody's rights may have changed. */
  version(): number;
  /** What it was before the caller was let in. */
  since: number;
  /** Throws `FlowError` UNAUTHENTICATED or FORBIDDEN where the caller may no longer see what they are shown. */
  again(): Promise<void>;
}

/** How long nobody is asked again though nothing was heard. */
const AGAIN_MS = 30_000;

/**
 * A stream that outlives the moment at which it was allowed: asked for again before anything is given once rights have
 * changed, and now and then. Without `recheck` (operators, workers) it is the stream itself.
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
