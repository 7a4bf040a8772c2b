/*
 * Statistics of executions are made of these. Durations are kept as counts in buckets whose bounds grow by a tenth: adding the counts of two histograms is the histogram of both, so that
 * percentiles of a day come from those of its hours. A percentile is off by 5 % of itself at most.
 */

/** Counts by bucket, only of buckets that have some. */
export type Histogram = Record<number, number>;

const GROWTH = 1.1;
const LOG_GROWTH = Math.log(GROWTH);
/** Bucket of the longest duration that is told apart: some four hundred years. */
export const BUCKET_MAX = 310;

/** The bucket of a duration in milliseconds: 0 up to 1 ms, then `n` up to 1.1 to the power of `n`. */
export function bucketOf(ms: number): number {
  // Nearly a whole number is one: the bound of a bucket belongs to it.
  return ms > 1 ? Math.min(BUCKET_MAX, Math.ceil(Math.log(ms) / LOG_GROWTH - 1e-9)) : 0;
}

/** What a duration of this bucket is told as, in milliseconds: as far from its lower bound as from its upper one, by their ratio. */
export function durationOf(bucket: number): number {
  return bucket === 0 ? 0 : (2 * GROWTH ** bucket) / (GROWTH + 1);
}

/** Adds a duration, in place. */
export function addDuration(histogram: Histogram, ms: number): void {
  const bucket = bucketOf(ms);
  histogram[bucket] = (histogram[bucket] ?? 0) + 1;
}

/** Adds all of another histogram, in place. */
export function addHistogram(histogram: Histogram, other: Histogram): void {
  for (const bucket in other) histogram[bucket] = (histogram[bucket] ?? 0) + (other[bucket] ?? 0);
}

/** Durations that a half, 95 and 99 of a hundred do not exceed, in milliseconds. */
export interface Percentiles {
  p50: number;
  p95: number;
  p99: number;
}

/** Of an empty histogram null. */
export function percentilesOf(histogram: Histogram): Percentiles | null {
  const buckets = Object.keys(histogram)
    .map(Number)
    .sort((left, right) => left - right);
  const total = buckets.reduce((sum, bucket) => sum + (histogram[bucket] ?? 0), 0);
  if (total === 0) return null;
  const at = (share: number) => {
    // The smallest duration that so many do not exceed.
    let left = Math.ceil(share * total);
    const found = buckets.find((bucket) => {
      left -= histogram[bucket] ?? 0;
      return left <= 0;
    });
    return rounded(durationOf(found ?? 0));
  };
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}

/** More than three digits would claim a precision that there is not. */
function rounded(ms: number): number {
  return Number(ms.toPrecision(3));
}
