import type { Execution } from "../../api/types.ts";

/** Inputs that are named in the header, and characters of a value. */
const NAMED_MAX = 3;
const VALUE_MAX = 28;

/** The inputs in short: `day=2026-11-21 limit=10 +2`. */
export function inputText(workload: Readonly<Record<string, unknown>>): string {
  const named = Object.entries(workload);
  const short = named.slice(0, NAMED_MAX).map(([name, value]) => `${name}=${valueText(value)}`);
  return [...short, ...(named.length > NAMED_MAX ? [`+${named.length - NAMED_MAX}`] : [])].join(" ");
}

function valueText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.length}]`;
  if (typeof value === "object" && value !== null) return "{…}";
  const text = String(value);
  return text.length > VALUE_MAX ? `${text.slice(0, VALUE_MAX)}…` : text;
}

/** How far it is: `4 of 6 steps done, 1 not reached`; per cent only while it is open. */
export function countsText({ steps, ended_at, progress }: Execution): string {
  const count = (state: string) => steps.filter(({ status }) => status === state).length;
  const parts = [`${count("COMPLETED")} of ${steps.length} ${steps.length === 1 ? "step" : "steps"} done`];
  if (count("SKIPPED") > 0) parts.push(`${count("SKIPPED")} skipped`);
  if (ended_at !== null && count("PENDING") > 0) parts.push(`${count("PENDING")} not reached`);
  if (ended_at === null) parts.push(`${progress} %`);
  return parts.join(", ");
}
