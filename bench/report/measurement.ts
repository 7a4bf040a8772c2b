/** One line of the benchmark's table. */
export interface Measurement {
  /** What was measured; begins with its id in the performance goals (B1 … B9) where it has one. */
  name: string;
  /** NaN: it could not be measured. */
  value: number;
  unit: string;
  /** The same figure of others, measured in the same run, by their names. */
  beside?: Readonly<Record<string, number>>;
  /** What is wanted: at least (`more`) or at most (`less`) this. Absent: a figure to compare with. */
  target?: number;
  better?: "more" | "less";
}

/** True when the figure reaches its target, or has none. */
export function isReached({ value, target, better }: Measurement): boolean {
  if (target === undefined) return true;
  return better === "less" ? value <= target : value >= target;
}

/** The value below which `share` of the figures lie. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((left, right) => left - right);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
