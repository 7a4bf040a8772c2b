import { isReached, type Measurement } from "./measurement.ts";

/** The measurements as lines of text: flow's figure, a column for each peer, the target. */
export function tableOf(measurements: readonly Measurement[]): string {
  const peers = [...new Set(measurements.flatMap(({ beside }) => Object.keys(beside ?? {})))];
  const head = ["", "flow", "", ...peers, "target", ""];
  const rows = measurements.map((measurement) => {
    const { name, value, unit, beside, target, better } = measurement;
    const goal =
      target === undefined ? ["", ""] : [`${better === "less" ? "≤" : "≥"} ${shown(target)}`, verdict(measurement)];
    return [name, shown(value), unit, ...peers.map((peer) => shown(beside?.[peer])), ...goal];
  });
  const all = peers.length > 0 ? [head, ...rows] : rows;
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const isText = (column: number) => column === 0 || column === 2 || column === head.length - 1;
  return all
    .map((row) =>
      row
        .map((cell, column) => (isText(column) ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
        .join("  ")
        .trimEnd(),
    )
    .map((line) => `${line}\n`)
    .join("");
}

function verdict(measurement: Measurement): string {
  return isReached(measurement) ? "reached" : "MISSED";
}

function shown(value: number | undefined): string {
  if (value === undefined) return "";
  if (Number.isNaN(value)) return "failed";
  const digits = Math.abs(value) >= 100 ? 0 : 2;
  return value.toLocaleString("en-US", { maximumFractionDigits: digits });
}
