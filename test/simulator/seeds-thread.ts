import { parentPort, workerData } from "node:worker_threads";
import { runSeeds } from "./run-seeds.ts";

// A thread of the simulator: runs its share of the seeds and says what became of them.

const { first, last, stride } = workerData as { first: number; last: number; stride: number };
parentPort?.postMessage(await runSeeds(first, last, stride));
