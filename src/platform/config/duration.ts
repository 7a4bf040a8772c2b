const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
/** A hundred years: a longer duration is a mistake, and beyond the dates that arithmetic supports. */
const DURATION_MS_MAX = 100 * 365 * 86_400_000;

/** Milliseconds of `90s`, `15m`, `1h`, `30d` (or `500ms`); undefined for another text, for nothing and beyond a century. */
export function parseDuration(text: string): number | undefined {
  const [, number = "", unit = ""] = /^(\d{1,12}(?:\.\d{1,6})?)(ms|s|m|h|d)$/.exec(text.trim()) ?? [];
  const duration = Number(number) * (UNIT_MS[unit] ?? Number.NaN);
  return duration >= 1 && duration <= DURATION_MS_MAX ? Math.round(duration) : undefined;
}
