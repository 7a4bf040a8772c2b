import { setTimeout as sleep } from "node:timers/promises";
import { atMost } from "../report/figures.ts";
import type { Measurement } from "../report/measurement.ts";
import type { ServiceBench } from "./context.ts";

/** What a start leaves to be done: registrations, the first sweeps, compiled code. */
const SETTLE_MS = 5_000;

/** What a service costs that has just been started and has nothing to do. Before the other parts: their memory stays. */
export async function benchIdle({ flow, scale: { idleSeconds } }: ServiceBench): Promise<Measurement[]> {
  await sleep(SETTLE_MS);
  const kinds = ["server", "worker", "PostgreSQL"] as const;
  const used = () => Promise.all(kinds.map((kind) => flow.times[kind]()));
  const before = await used();
  await sleep(idleSeconds * 1_000);
  const after = await used();
  // Microseconds per second as a share of a core.
  const shares = kinds.map((_, index) => ((after[index] ?? 0) - (before[index] ?? 0)) / idleSeconds / 1e4);
  const [server = Number.NaN, worker = Number.NaN] = shares;
  const memory = await flow.memoryMb();
  return [
    { name: "idle: server and worker", value: server + worker, unit: "% of a core", ...atMost(1) },
    ...kinds.map((kind, index) => ({ name: `   the ${kind}`, value: shares[index] ?? Number.NaN, unit: "%" })),
    { name: "idle: memory of server and worker", value: memory.server + memory.worker, unit: "MB", ...atMost(200) },
    { name: "   the server", value: memory.server, unit: "MB" },
    { name: "   the worker", value: memory.worker, unit: "MB" },
  ];
}
