import { parentPort, workerData } from "node:worker_threads";
import { runSeeds, type SeedRange } from "./run-seeds.ts";

// A thread of the simulator: runs its share of the seeds and says what became of them.

const { ranges, index, threads } = workerData as { ranges: readonly SeedRange[]; index: number; threads: number };
parentPort?.postMessage(await runSeeds(ranges, index, threads));
