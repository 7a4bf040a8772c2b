import type { FlowCandidate } from "../candidates/flow.ts";
import { atMost } from "../report/figures.ts";
import { type Measurement, quantile } from "../report/measurement.ts";
import type { ServiceBench } from "./context.ts";
import { withMemory } from "./memory.ts";

/** B4: does a step, an iteration or a process cost more after many of them? Costs are distances of the events' times. */
export async function benchEndurance({ flow, scale }: ServiceBench): Promise<Measurement[]> {
  return [...(await chainFigures(flow, scale.chainSteps)), ...(await loopFigures(flow, scale.iterations))];
}

const ROUNDS = 5;
const WINDOW = 100;

async function chainFigures(flow: FlowCandidate, steps: number): Promise<Measurement[]> {
  const early: number[] = [];
  const late: number[] = [];
  for (let round = 0; round <= ROUNDS; round += 1) {
    const times = await timesOf(flow, await flow.execute({ kind: "chain", steps }), "step.completed");
    // The first round warms up.
    if (round === 0) continue;
    early.push(distance(times, 0, WINDOW));
    late.push(distance(times, steps - 1 - WINDOW, WINDOW));
  }
  const name = `B4 service: cost of step ${steps.toLocaleString("en-US")} over the first hundred`;
  return [{ name, value: quantile(late, 0.5) / quantile(early, 0.5), unit: "×", ...atMost(1.2) }];
}

async function loopFigures(flow: FlowCandidate, iterations: number): Promise<Measurement[]> {
  // Warm: the start of the loop is not to be the start of the processes.
  await flow.execute({ kind: "fan", items: iterations / 10 });
  const name = `B4 service: loop of ${iterations.toLocaleString("en-US")}`;
  const { value, lines } = await withMemory(name, flow, () => flow.execute({ kind: "fan", items: iterations }));
  const times = await timesOf(flow, value, "loop.iteration.completed");
  const window = Math.floor(iterations / 10);
  const first = distance(times, 0, window);
  const last = distance(times, times.length - 1 - window, window);
  const total = distance(times, 0, times.length - 1);
  return [
    { name: `${name}, iterations`, value: (times.length * 1_000) / total, unit: "/s" },
    { name: `${name}, last tenth over first tenth`, value: last / first, unit: "×", ...atMost(1.2) },
    ...lines,
  ];
}

async function timesOf(flow: FlowCandidate, executionId: string, wanted: string): Promise<number[]> {
  const events = await flow.events(executionId, wanted);
  return events.map(({ atMs }) => atMs).sort((left, right) => left - right);
}

/** Milliseconds that `count` happenings took from the one at `from` on. */
function distance(times: readonly number[], from: number, count: number): number {
  return (times[from + count] ?? Number.NaN) - (times[from] ?? Number.NaN);
}
