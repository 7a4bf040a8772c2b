import { atLeast, atMost, type Figures, figuresOf, line, measureEach } from "../report/figures.ts";
import { type Measurement, quantile } from "../report/measurement.ts";
import type { ServiceBench } from "./context.ts";
import { timesWithin } from "./load.ts";

/** Items of the loop → ms that it may take. */
const GOALS: Readonly<Record<number, number>> = { 100: 60, 1000: 300, 10000: 3_000 };

/**
 * After this time no further run of a loop begins: of 10,000 items a peer's single run may take minutes, and the whole benchmark is to
 * end in a quarter of an hour.
 */
const RUNS_MAX_MS = 30_000;

/** B3: a parallel loop, and what waits for all of it. */
export async function benchFanOut({ withPure, scale, log }: ServiceBench): Promise<Measurement[]> {
  const lines: Measurement[] = [];
  for (const { items, runs } of scale.fans) {
    const measured = await measureEach(withPure, log, `loop of ${items.toLocaleString("en-US")}`, async (candidate) => {
      const times = await timesWithin(runs, RUNS_MAX_MS, () => candidate.run({ kind: "fan", items }));
      if (times.length < runs) log(`    ${times.length} of ${runs} runs counted: a run took ${seconds(times)} s`);
      return times;
    });
    const figures = figuresOf(measured, (latencies) => quantile(latencies, 0.5));
    const goal = GOALS[items];
    const name = `B3 parallel loop of ${items.toLocaleString("en-US")}`;
    lines.push(line(`${name}, p50`, "ms", figures, goal === undefined ? {} : atMost(goal)));
    lines.push(...overBetterPeer(name, figures));
  }
  return lines;
}

function seconds(times: readonly number[]): string {
  return (quantile(times, 0.5) / 1_000).toFixed(1);
}

function overBetterPeer(name: string, figures: Figures): Measurement[] {
  const own = figures.get("flow");
  const peers = [...figures].filter(([candidate]) => !candidate.startsWith("flow")).map(([, ms]) => ms);
  if (own === undefined || peers.length === 0) return [];
  return [{ name: `${name}: over the better peer`, value: Math.min(...peers) / own, unit: "×", ...atLeast(4) }];
}
