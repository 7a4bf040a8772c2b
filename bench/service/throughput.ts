import type { Candidate } from "../candidates/candidate.ts";
import { atLeast, atMost, type Figures, figuresOf, line, measureEach } from "../report/figures.ts";
import { type Measurement, quantile } from "../report/measurement.ts";
import type { ServiceBench } from "./context.ts";
import { type Traffic, type Writing, withTraffic, withWriting } from "./database-cost.ts";
import { closedLoop, type Load } from "./load.ts";
import { withMemory } from "./memory.ts";

const STEPS = 10;
const IN_FLIGHT = 64;
const MANY_IN_FLIGHT = 256;

/** B1: workflows of ten steps that do nothing, 64 in flight; and once more 256. */
export async function benchThroughput(bench: ServiceBench): Promise<Measurement[]> {
  await measureEach(bench.withPure, bench.log, "warm", (candidate) => load(candidate, bench.scale.workflows / 2));
  const { value: rounds, lines } = await withMemory("B1", bench.flow, () => inTurns(bench));
  const stepsPerSecond = figuresOf(rounds, (loads) => quantile(loads.map(rate), 0.5));
  const many = await measureEach(bench.withPure, bench.log, `${MANY_IN_FLIGHT} in flight`, (candidate) =>
    load(candidate, bench.scale.workflows, MANY_IN_FLIGHT),
  );
  const manyPerSecond = figuresOf(many, rate);
  const latency = (share: number) =>
    figuresOf(rounds, (loads) =>
      quantile(
        loads.flatMap(({ latencies }) => latencies),
        share,
      ),
    );
  return [
    line(`B1 ${STEPS} steps each, ${IN_FLIGHT} in flight`, "steps/s", stepsPerSecond, atLeast(6_000)),
    ...over("flow", "DBOS", stepsPerSecond, 6),
    ...over("flow", "Restate", stepsPerSecond, 2.5),
    ...over("flow, pure", "Restate", stepsPerSecond, 4),
    line(`B1 ${STEPS} steps each, ${MANY_IN_FLIGHT} in flight`, "steps/s", manyPerSecond),
    ...over("flow", "Restate", manyPerSecond, 2.5, `, ${MANY_IN_FLIGHT} in flight`),
    line("B1 start to known result, p50", "ms", latency(0.5)),
    line("B1 start to known result, p99", "ms", latency(0.99)),
    ...lines,
  ];
}

/** In turns, so that what disturbs the machine for a while disturbs everyone. */
async function inTurns({ withPure, scale, log }: ServiceBench): Promise<Figures<Load[]>> {
  const rounds = new Map<Candidate["name"], Load[]>();
  for (let round = 0; round < scale.rounds; round += 1) {
    const loads = await measureEach(withPure, log, `round ${round + 1} of ${scale.rounds}`, (candidate) =>
      load(candidate, scale.workflows),
    );
    for (const [name, one] of loads) rounds.set(name, [...(rounds.get(name) ?? []), one]);
  }
  return rounds;
}

/** B9: what a step of B1 costs the database. Restate is left out: it keeps its own log. */
export async function benchDatabaseCost({ candidates, scale, log, server }: ServiceBench): Promise<Measurement[]> {
  const owners = candidates.filter(({ database }) => database !== undefined);
  const costs = await measureEach(owners, log, "database", async (candidate) => {
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

function load(candidate: Candidate, workflows: number, inFlight = IN_FLIGHT): Promise<Load> {
  return closedLoop(Math.ceil(workflows), inFlight, () => candidate.run({ kind: "chain", steps: STEPS }));
}

function rate({ ms, latencies }: Load): number {
  return (latencies.length * STEPS * 1_000) / ms;
}

type Name = Candidate["name"];

/** How many times as fast as a peer. */
function over(own: Name, peer: Name, figures: Figures, target: number, where = ""): Measurement[] {
  const [one, other] = [figures.get(own), figures.get(peer)];
  if (one === undefined || other === undefined) return [];
  const name = `B1 over ${peer}${own === "flow" ? "" : ", pure steps"}${where}`;
  return [{ name, value: one / other, unit: "×", ...atLeast(target) }];
}
