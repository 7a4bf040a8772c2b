import type { FlowCandidate } from "../candidates/flow.ts";
import { atMost, figuresOf, line, measureEach } from "../report/figures.ts";
import { type Measurement, quantile } from "../report/measurement.ts";
import type { ServiceBench } from "./context.ts";
import { closedLoop } from "./load.ts";

const STEPS = 40;

/** B2: forty steps that do nothing, one workflow at a time. */
export async function benchSingle({ withPure, flow, scale, log }: ServiceBench): Promise<Measurement[]> {
  const runs = await measureEach(withPure, log, `${STEPS} steps`, async (candidate) => {
    const once = () => candidate.run({ kind: "chain", steps: STEPS });
    await closedLoop(5, 1, once);
    return (await closedLoop(scale.singles, 1, once)).latencies;
  });
  const total = (share: number) => figuresOf(runs, (latencies) => quantile(latencies, share));
  const lines = [
    line(`B2 ${STEPS} steps, unloaded, p50`, "ms", total(0.5), atMost(35)),
    line(`B2 ${STEPS} steps, unloaded, p99`, "ms", total(0.99)),
    line(
      "B2 the same, per step",
      "ms",
      figuresOf(runs, (latencies) => quantile(latencies, 0.5) / STEPS),
    ),
  ];
  return [...lines, ...(await stepTimes(flow, scale.singles))];
}

/**
 * Step to step and start to first step, from the times of the events. They have whole milliseconds, so a single distance is
 * a millisecond too long or too short at most; over the thousands of them that does not add up.
 */
async function stepTimes(flow: FlowCandidate, runs: number): Promise<Measurement[]> {
  const distances: number[] = [];
  const starts: number[] = [];
  for (let run = 0; run < runs; run += 1) {
    const events = await flow.events(await flow.execute({ kind: "chain", steps: STEPS }));
    const ends = events.filter(({ type }) => type === "step.completed").map(({ atMs }) => atMs);
    distances.push(...ends.slice(1).map((end, index) => end - (ends[index] ?? end)));
    const claimed = events.find(({ type }) => type === "command.claimed");
    if (claimed !== undefined) starts.push(claimed.atMs - (events[0]?.atMs ?? claimed.atMs));
  }
  const mean = distances.reduce((sum, distance) => sum + distance, 0) / distances.length;
  return [
    { name: "B2 step to step, by events, mean", value: mean, unit: "ms" },
    { name: "B2 step to step, by events, p50", value: quantile(distances, 0.5), unit: "ms", ...atMost(1.5) },
    { name: "B2 step to step, by events, p99", value: quantile(distances, 0.99), unit: "ms", ...atMost(6) },
    { name: "B2 start to first step claimed, by events, p50", value: quantile(starts, 0.5), unit: "ms", ...atMost(8) },
  ];
}
