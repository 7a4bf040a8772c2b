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
}

/** Executions of a group that are named. */
const SAMPLES_MAX = 5;

/** The groups with further failures in them, which are older than those before; the most frequent first. */
export function withFailures(groups: readonly ErrorGroup[], rows: readonly ExecutionItem[]): ErrorGroup[] {
  const all = new Map(groups.map((group) => [group.key, group]));
  for (const { execution_id: id, path, started_at: startedAt, error } of rows) {
    if (error === null) continue;
    const { step: named } = error as { step?: unknown };
    const step = typeof named === "string" ? named : undefined;
    const key = JSON.stringify([error.code, step ?? "", shapeOf(error.message)]);
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
    });
  }
  return [...all.values()].sort((one, other) => other.count - one.count);
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
