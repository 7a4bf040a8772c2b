/** Spans before now of which people ask, by the word that stands in the address. */
export const SPANS = {
  "15m": { label: "the last 15 minutes", ms: 900_000 },
  "1h": { label: "the last hour", ms: 3_600_000 },
  "24h": { label: "the last day", ms: 86_400_000 },
  "7d": { label: "the last week", ms: 604_800_000 },
} as const;

/** The moment of a text: a time, or a duration before now. Undefined for an empty or invalid text. */
export function sinceOf(text: string | undefined, now: number): string | undefined {
  if (text === undefined || text === "") return undefined;
  const span = Object.entries(SPANS).find(([word]) => word === text)?.[1];
  return span === undefined ? text : new Date(now - span.ms).toISOString();
}
