import assert from "node:assert/strict";
import { test } from "node:test";
import {
  addDuration,
  addHistogram,
  BUCKET_MAX,
  bucketOf,
  durationOf,
  type Histogram,
  percentilesOf,
} from "../../../src/platform/telemetry/histogram.ts";

function histogramOf(durations: readonly number[]): Histogram {
  const histogram: Histogram = {};
  for (const ms of durations) addDuration(histogram, ms);
  return histogram;
}

test("a bucket ends with its bound, and the next one begins above it", () => {
  assert.deepEqual([-5, 0, 0.5, 1].map(bucketOf), [0, 0, 0, 0]);
  for (const bucket of [1, 2, 50, 300]) {
    const bound = 1.1 ** bucket;
    assert.equal(bucketOf(bound), bucket);
    assert.equal(bucketOf(bound * 1.000_001), bucket + 1);
    assert.equal(bucketOf(bound * 0.999_999), bucket);
  }
  assert.equal(bucketOf(Number.MAX_SAFE_INTEGER), BUCKET_MAX);
});

test("what a bucket is told as is within 5 % of all that is in it", () => {
  for (let ms = 1.01; ms < 1e12; ms *= 1.013) {
    const told = durationOf(bucketOf(ms));
    assert.ok(Math.abs(told - ms) / ms <= 0.05, `${ms} is told as ${told}`);
  }
});

test("percentiles of none, of one and of many, each within 5 %", () => {
  assert.equal(percentilesOf({}), null);
  const { p50, p95, p99 } = percentilesOf(histogramOf([200])) ?? {};
  assert.ok(p50 === p95 && p95 === p99);
  assert.ok(Math.abs((p50 ?? 0) - 200) <= 10);
  const many = percentilesOf(histogramOf(Array.from({ length: 1_000 }, (_, index) => index + 1)));
  assert.ok(many !== null);
  for (const [found, exact] of [
    [many.p50, 500],
    [many.p95, 950],
    [many.p99, 990],
  ] as const) {
    assert.ok(Math.abs(found - exact) / exact <= 0.05, `${found} for ${exact}`);
  }
});

test("a percentile is a duration that so many do not exceed: 95 of 100, not 94", () => {
  const of = (slow: number) => histogramOf([...Array(100 - slow).fill(1), ...Array(slow).fill(1_000)]);
  assert.equal(percentilesOf(of(5))?.p95, 0);
  assert.ok((percentilesOf(of(6))?.p95 ?? 0) > 900);
});

test("the sum of two histograms is the histogram of both", () => {
  const sum = histogramOf([1, 20, 20]);
  addHistogram(sum, histogramOf([20, 300]));
  assert.deepEqual(sum, histogramOf([1, 20, 20, 20, 300]));
});
