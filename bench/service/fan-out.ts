import { atLeast, atMost, type Figures, figuresOf, line, measureEach } from "../report/figures.ts";
import { type Measurement, quantile } from "../report/measurement.ts";
import type { ServiceBench } from "./context.ts";
import { closedLoop } from "./load.ts";

/** Items of the loop → ms that it may take. */
const GOALS: Readonly<Record<number, number>> = { 100: 60, 1000: 300, 10000: 3_000 };

/** B3: a parallel loop, and what waits for all of it. */
export async function benchFanOut({ withPure, scale, log }: ServiceBench): Promise<Measurement[]> {
  const lines: Measurement[] = [];
  for (const { items, runs } of scale.fans) {
    const measured = await measureEach(withPure, log, async (candidate) => {
      const once = () => candidate.run({ kind: "fan", items });
      await once();
      return (await closedLoop(runs, 1, once)).latencies;
    });
    const figures = figuresOf(measured, (latencies) => quantile(latencies, 0.5));
    const goal = GOALS[items];
    const name = `B3 parallel loop of ${items.toLocaleString("en-US")}`;
    lines.push(line(`${name}, p50`, "ms", figures, goal === undefined ? {} : atMost(goal)));
    lines.push(...overBetterPeer(name, figures));
  }
  return lines;
}

function overBetterPeer(name: string, figures: Figures): Measurement[] {
  const own = figures.get("flow");
  const peers = [...figures].filter(([candidate]) => !candidate.startsWith("flow")).map(([, ms]) => ms);
  if (own === undefined || peers.length === 0) return [];
  return [{ name: `${name}: over the better peer`, value: Math.min(...peers) / own, unit: "×", ...atLeast(4) }];
}
