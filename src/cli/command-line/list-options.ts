import { FlowError } from "../../schema/words/errors.ts";
import { type CliValues, textOption } from "./command.ts";

const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `90s`, `15m`, `2h`, `7d` before now, or a time, as an `option` has it. Throws `FlowError` USAGE. */
export function momentOf(text: string, now: number, option = "--since"): string {
  const [, amount, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const at = amount === undefined ? Date.parse(text) : now - Number(amount) * (UNITS_MS[unit ?? ""] ?? 0);
  const isTime = amount !== undefined || /^\d{4}-\d\d-\d\d/.test(text);
  if (isTime && !Number.isNaN(at) && at >= 0) return new Date(at).toISOString();
  throw new FlowError("USAGE", `${option} takes 90s, 15m, 2h, 7d, or a time as 2026-01-31T12:00:00Z; got '${text}'`);
}

/** The number of `--limit`. Throws `FlowError` USAGE. */
export function limitOf(options: CliValues, otherwise: number): number {
  const text = textOption(options, "limit");
  if (text === undefined) return otherwise;
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new FlowError("USAGE", `--limit must be a whole number from 1, got '${text}'`);
}
