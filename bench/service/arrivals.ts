import type { Candidate } from "../candidates/candidate.ts";
import { atLeast, atMost, figuresOf, line, measureEach } from "../report/figures.ts";
import { type Measurement, quantile } from "../report/measurement.ts";
import type { ServiceBench } from "./context.ts";
import { type Arrivals, closedLoop, openLoop } from "./load.ts";

const STEPS = 2;
const STEADY_PER_SECOND = 100;
/** Rates on the way to the knee; each is at most a third more than the one before. */
const RAMP = [100, 200, 300, 400, 500, 600, 800, 1_000, 1_250, 1_500, 2_000, 2_500, 3_000, 3_500, 4_000];
/** A rate is carried when no queue grows: what arrives is done within this time, p99. */
const CARRIED_P99_MS = 250;

/** B5: two-step workflows that arrive at a steady rate, whether or not the earlier ones are done; and the highest such rate. */
export async function benchArrivals({ candidates, scale, log }: ServiceBench): Promise<Measurement[]> {
  const measured = await measureEach(candidates, log, `${STEADY_PER_SECOND}/s and more`, async (candidate) => {
    await closedLoop(200, 16, () => candidate.run({ kind: "chain", steps: STEPS }));
    const { latencies } = await arrive(candidate, STEADY_PER_SECOND, scale.arrivalSeconds);
    return { latencies, knee: await findKnee(candidate, scale.rampSeconds) };
  });
  const latency = (share: number) => figuresOf(measured, ({ latencies }) => quantile(latencies, share));
  const name = `B5 ${STEADY_PER_SECOND} arrivals/s for ${scale.arrivalSeconds} s`;
  return [
    line(`${name}, p50`, "ms", latency(0.5)),
    line(`${name}, p99`, "ms", latency(0.99), atMost(15)),
    line(
      "B5 most arrivals carried",
      "/s",
      figuresOf(measured, ({ knee }) => knee),
      atLeast(3_000),
    ),
  ];
}

async function findKnee(candidate: Candidate, seconds: number): Promise<number> {
  let carried = 0;
  for (const rate of RAMP) {
    const { overrun, latencies } = await arrive(candidate, rate, seconds);
    if (overrun || quantile(latencies, 0.99) > CARRIED_P99_MS) break;
    carried = rate;
  }
  return carried;
}

function arrive(candidate: Candidate, perSecond: number, seconds: number): Promise<Arrivals> {
  return openLoop(perSecond, seconds, () => candidate.run({ kind: "chain", steps: STEPS }));
}
