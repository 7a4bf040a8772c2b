import { queryOptions } from "@tanstack/react-query";
import { type Answer, api } from "./client.ts";

/** How many executions ended, how, and how long they took, over a stretch of time. */
export type Stats = Answer<"GET /api/stats">;

/** Stretches before now of which people ask, with the server's buckets that fit, and how many of them make one bar. */
export const STATS_SPANS = {
  "1h": { label: "1 h", words: "the last hour", unit: "hour", ms: 3_600_000, bucket: "1m", merged: 1 },
  "24h": { label: "24 h", words: "the last 24 hours", unit: "24 h", ms: 86_400_000, bucket: "5m", merged: 3 },
  "7d": { label: "7 d", words: "the last 7 days", unit: "7 days", ms: 7 * 86_400_000, bucket: "1h", merged: 2 },
  "30d": { label: "30 d", words: "the last 30 days", unit: "30 days", ms: 30 * 86_400_000, bucket: "1h", merged: 8 },
} as const;
/** A stretch by its name. */
export type StatsSpan = keyof typeof STATS_SPANS;

const BUCKET_MS = { "1m": 60_000, "5m": 300_000, "1h": 3_600_000, "1d": 86_400_000 } as const;
/** The server folds what has ended every few seconds. */
const STATS_MS = 10_000;

/** What is asked beside the stretch. */
export interface StatsAbout {
  /** A path, or a pattern of paths, `etl/*`. */
  path?: string | undefined;
  /** Figures of each playbook too, those first that `sort` says. */
  group?: "path";
  sort?: "failed" | "slowest" | "count";
}

/** Statistics of a stretch that ends now, or `shift` stretches ago. */
export function stats(span: StatsSpan, about: StatsAbout = {}, shift = 0) {
  return queryOptions({
    queryKey: ["stats", span, about, shift],
    queryFn: ({ signal }) => {
      const { ms, bucket } = STATS_SPANS[span];
      const until = Date.now() - shift * ms;
      const asked = Object.entries({ ...about, bucket }).filter(([, value]) => value !== undefined);
      const query = {
        ...Object.fromEntries(asked),
        since: new Date(until - ms).toISOString(),
        until: new Date(until).toISOString(),
      };
      return api("GET /api/stats", { query, signal });
    },
    refetchInterval: STATS_MS,
    retry: false,
  });
}

/** The buckets of an answer as bars, `merged` of them in each, the last bar at the end. */
export function barsOf({ bucket, buckets }: Pick<Stats, "bucket" | "buckets">, merged: number) {
  const first = buckets.length % merged;
  const groups = Array.from({ length: Math.floor(buckets.length / merged) }, (_, index) =>
    buckets.slice(first + index * merged, first + (index + 1) * merged),
  );
  return groups.map((group) => {
    const sum = (status: "COMPLETED" | "FAILED" | "CANCELLED") =>
      group.reduce((before, { counts }) => before + counts[status], 0);
    const from = Date.parse(group[0]?.at ?? "");
    return {
      from,
      until: from + merged * BUCKET_MS[bucket],
      completed: sum("COMPLETED"),
      failed: sum("FAILED"),
      cancelled: sum("CANCELLED"),
    };
  });
}
