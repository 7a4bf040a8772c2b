import type { ExecutionItem } from "../api/types.ts";

/** Failures that are the same but for their numbers, ids and names in quotes. */
export interface ErrorGroup {
  /** What they have in common. */
  shape: string;
  code: string;
  /** Newest first. */
  rows: ExecutionItem[];
  paths: string[];
}

/** Failed executions by what went wrong, the most frequent first. */
export function errorGroups(rows: readonly ExecutionItem[]): ErrorGroup[] {
  const groups = new Map<string, ErrorGroup>();
  for (const row of rows) {
    if (row.error === null) continue;
    const shape = shapeOf(row.error.message);
    const key = `${row.error.code} ${shape}`;
    const group = groups.get(key) ?? { shape, code: row.error.code, rows: [], paths: [] };
    group.rows.push(row);
    if (!group.paths.includes(row.path)) group.paths.push(row.path);
    groups.set(key, group);
  }
  return [...groups.values()].sort((one, other) => other.rows.length - one.rows.length);
}

/** A message without what differs from run to run. */
export function shapeOf(message: string): string {
  return message
    .slice(0, 2_000)
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/gi, "…")
    .replaceAll(/"[^"]*"|'[^']*'/g, "'…'")
    .replaceAll(/\d+(?:[.:]\d+)*/g, "#");
}
