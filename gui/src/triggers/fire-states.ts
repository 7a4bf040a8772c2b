import type { Fire } from "../api/triggers.ts";

/** What may have become of a fire. */
export const FIRE_STATES = ["started", "queued", "skipped", "missed", "failed"] as const satisfies Fire["status"][];

/** The month of a moment, as it stands in addresses: `2026-11`. */
export function monthOf(at: number): string {
  const date = new Date(at);
  return `${date.getFullYear()}-${String(date.getMonth() + 1).padStart(2, "0")}`;
}

/** A text that names a month, or undefined. */
export function readMonth(text: unknown): string | undefined {
  return typeof text === "string" && /^\d{4}-(0[1-9]|1[0-2])$/.test(text) ? text : undefined;
}
