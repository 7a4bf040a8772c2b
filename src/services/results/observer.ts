import type { ResultStoreName } from "../../schema/api/results.ts";

/** Why results went. */
export type RemovalReason = "expired" | "scope" | "execution";

/** Notifications about stored results, for metrics and the log. Nothing here may throw. */
export interface ResultsObserver {
  stored(store: ResultStoreName, bytes: number): void;
  read(store: ResultStoreName, bytes: number): void;
  removed(reason: RemovalReason, count: number): void;
  /** A store did not do what it was asked for; the same is tried again. */
  failed(store: ResultStoreName, doing: "remove" | "forget" | "end", error: unknown): void;
  /** What a store has is not what was written. */
  damaged(store: ResultStoreName, ref: string): void;
}

/** An observer that does nothing. */
export const SILENT: ResultsObserver = {
  stored: () => undefined,
  read: () => undefined,
  removed: () => undefined,
  failed: () => undefined,
  damaged: () => undefined,
};
