import type { ExecutionItem } from "../api/types.ts";

/** Failures that are the same but for their numbers, ids and names in quotes. */
export interface ErrorGroup {
  /** Code and what the messages have in common. */
  key: string;
  code: string;
  /** The step that failed, where the error names it. */
  step: string | undefined;
  /** The newest one's, as it is. */
  message: string;
  count: number;
  /** When the newest and the oldest of them began. */
  last: string;
  first: string;
  /** The newest of them. */
  samples: { id: string; startedAt: string; path: string }[];
  /** How many of which playbook. */
  paths: ReadonlyMap<string, number>;
  /** Executions that failed because they had called one of these; they are not counted. */
  callers: number;
}

/** The failures read so far. */
export interface Failures {
  /** The most frequent first. */
  groups: readonly ErrorGroup[];
  /** Executions that were looked at. */
  looked: number;
  /** In which group each of them is, or what it called. */
  keys: ReadonlyMap<string, string>;
}

/** Before anything was looked at. */
export const NO_FAILURES: Failures = { groups: [], looked: 0, keys: new Map() };

/** Executions of a group that are named. */
const SAMPLES_MAX = 5;

/**
 * The same with further, older failures. A failure that an execution inherited from a child is counted once, where it began:
 * the child is younger, so it was read before.
 */
export function withFailures(before: Failures, rows: readonly ExecutionItem[]): Failures {
  const all = new Map(before.groups.map((group) => [group.key, group]));
  const keys = new Map(before.keys);
  for (const { execution_id: id, path, started_at: startedAt, error } of rows) {
    if (error === null) continue;
    const { step: named, details } = error as { step?: unknown; details?: { execution_id?: unknown } | null };
    const cause = keys.get(String(details?.execution_id ?? ""));
    const group = cause === undefined ? undefined : all.get(cause);
    if (group !== undefined) {
      all.set(group.key, { ...group, callers: group.callers + 1 });
      keys.set(id, group.key);
      continue;
    }
    const step = typeof named === "string" ? named : undefined;
    const key = JSON.stringify([error.code, step ?? "", shapeOf(error.message)]);
    keys.set(id, key);
    const known = all.get(key);
    const paths = new Map(known?.paths);
    paths.set(path, (paths.get(path) ?? 0) + 1);
    const samples = known?.samples ?? [];
    all.set(key, {
      key,
      code: error.code,
      step,
      message: known?.message ?? error.message,
      count: (known?.count ?? 0) + 1,
      last: known?.last ?? startedAt,
      first: startedAt,
      samples: samples.length < SAMPLES_MAX ? [...samples, { id, startedAt, path }] : samples,
      paths,
      callers: known?.callers ?? 0,
    });
  }
  const groups = [...all.values()].sort((one, other) => other.count - one.count);
  return { groups, looked: before.looked + rows.length, keys };
}

/** A message without what differs from run to run: ids, numbers, what stands in quotes. */
export function shapeOf(message: string): string {
  return message
    .slice(0, 2_000)
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/gi, "…")
    .replaceAll(/"[^"]*"|'[^']*'/g, "'…'")
    .replaceAll(/\b[0-9a-f]{12,}\b/gi, "…")
    .replaceAll(/\d+(?:[.:]\d+)*/g, "#");
}
