import type { Candidate } from "../candidates/candidate.ts";
import { atLeast, atMost, type Figures, figuresOf, line, measureEach } from "../report/figures.ts";
import { type Measurement, quantile } from "../report/measurement.ts";
import type { ServiceBench } from "./context.ts";
import { type Traffic, type Writing, withTraffic, withWriting } from "./database-cost.ts";
import { closedLoop, type Load } from "./load.ts";
import { withMemory } from "./memory.ts";

const STEPS = 10;
const IN_FLIGHT = 64;

/** B1: workflows of ten steps that do nothing, 64 in flight. */
export async function benchThroughput(bench: ServiceBench): Promise<Measurement[]> {
  await measureEach(bench.candidates, bench.log, (candidate) => load(candidate, bench.scale.workflows / 2));
  const { value: rounds, lines } = await withMemory("B1", bench.flow, () => inTurns(bench));
  const stepsPerSecond = figuresOf(rounds, (loads) => quantile(loads.map(rate), 0.5));
  const latency = (share: number) =>
    figuresOf(rounds, (loads) =>
      quantile(
        loads.flatMap(({ latencies }) => latencies),
        share,
      ),
    );
  return [
    line(`B1 ${STEPS} steps each, ${IN_FLIGHT} in flight`, "steps/s", stepsPerSecond, atLeast(6_000)),
    ...over("DBOS", stepsPerSecond, 5),
    ...over("Restate", stepsPerSecond, 3),
    line("B1 start to known result, p50", "ms", latency(0.5)),
    line("B1 start to known result, p99", "ms", latency(0.99)),
    ...lines,
  ];
}

/** In turns, so that what disturbs the machine for a while disturbs everyone. */
async function inTurns({ candidates, scale, log }: ServiceBench): Promise<Figures<Load[]>> {
  const rounds = new Map<Candidate["name"], Load[]>();
  for (let round = 0; round < scale.rounds; round += 1) {
    const loads = await measureEach(candidates, log, (candidate) => load(candidate, scale.workflows));
    for (const [name, one] of loads) rounds.set(name, [...(rounds.get(name) ?? []), one]);
  }
  return rounds;
}

/** B9: what a step of B1 costs the database. Restate is left out: it keeps its own log. */
export async function benchDatabaseCost({ candidates, scale, log, server }: ServiceBench): Promise<Measurement[]> {
  const owners = candidates.filter(({ database }) => database !== undefined);
  const costs = await measureEach(owners, log, async (candidate) => {
    const database = candidate.database ?? "";
    await load(candidate, scale.workflows / 2);
    const written = () => withWriting(server, database, () => load(candidate, scale.workflows));
    const { value, cost } = await withTraffic(server, database, written);
    return { ...cost, ...value.cost };
  });
  const perStep = (pick: (cost: Traffic & Writing) => number) =>
    figuresOf(costs, (cost) => pick(cost) / (scale.workflows * STEPS));
  return [
    line(
      "B9 commits per step",
      "",
      perStep(({ commits }) => commits),
      atMost(0.1),
    ),
    line(
      "B9 statements per step",
      "",
      perStep(({ statements }) => statements),
    ),
    line(
      "B9 write-ahead log per step",
      "bytes",
      perStep(({ walBytes }) => walBytes),
    ),
  ];
}

function load(candidate: Candidate, workflows: number): Promise<Load> {
  return closedLoop(Math.ceil(workflows), IN_FLIGHT, () => candidate.run({ kind: "chain", steps: STEPS }));
}

function rate({ ms, latencies }: Load): number {
  return (latencies.length * STEPS * 1_000) / ms;
}

function over(peer: Candidate["name"], figures: Figures, target: number): Measurement[] {
  const [own, other] = [figures.get("flow"), figures.get(peer)];
  if (own === undefined || other === undefined) return [];
  return [{ name: `B1 over ${peer}`, value: own / other, unit: "×", ...atLeast(target) }];
}
