import { startDbos } from "../candidates/dbos.ts";
import { startFlow } from "../candidates/flow.ts";
import { installPeers } from "../candidates/install-peers.ts";
import { startBenchPostgres } from "../candidates/postgres.ts";
import { startRestate } from "../candidates/restate.ts";
import type { Measurement } from "../report/measurement.ts";
import { benchArrivals } from "./arrivals.ts";
import type { ServiceBench } from "./context.ts";
import { benchDatabaseLimit } from "./database-limit.ts";
import { benchEndurance } from "./endurance.ts";
import { benchFanOut } from "./fan-out.ts";
import { benchIdle } from "./idle.ts";
import { benchPayloads } from "./payloads.ts";
import type { Scale } from "./scale.ts";
import { benchSingle } from "./single.ts";
import { benchDatabaseCost, benchThroughput } from "./throughput.ts";

/** The parts, by their ids in the performance goals, in the order in which they run. */
const PARTS: Readonly<Record<string, (bench: ServiceBench) => Promise<Measurement[]>>> = {
  idle: benchIdle,
  B1: benchThroughput,
  B9: benchDatabaseCost,
  B2: benchSingle,
  B3: benchFanOut,
  B4: benchEndurance,
  B5: benchArrivals,
  B6: benchPayloads,
};

/** Ids that {@link benchService} knows. */
export const SERVICE_IDS: readonly string[] = Object.keys(PARTS);

/** What {@link benchService} is to do. */
export interface ServiceBenchOptions {
  ids: readonly string[];
  peers: boolean;
  scale: Scale;
  /** Where this service's processes leave their profiles. */
  profiles?: string;
  log(line: string): void;
}

/**
 * Measures this service and its peers side by side, on one PostgreSQL that is started for it and is as durable as an
 * installation's. Throws when something does not start; a candidate that fails in a part has no figure there.
 */
export async function benchService(options: ServiceBenchOptions): Promise<Measurement[]> {
  const { ids, peers, scale, profiles, log } = options;
  if (peers) await installPeers(log);
  const stops: (() => Promise<void>)[] = [];
  const started = async <T extends { stop(): Promise<void> }>(starting: Promise<T>): Promise<T> => {
    const part = await starting;
    stops.unshift(() => part.stop());
    return part;
  };
  try {
    const server = await started(startBenchPostgres());
    const lines = await benchDatabaseLimit(server, scale.statements);
    const flow = await started(startFlow(server, profiles === undefined ? {} : { profiles }));
    const pure = await started(startFlow(server, { isPure: true }));
    const others = peers ? [await started(startDbos(server)), await started(startRestate())] : [];
    const bench = { server, flow, candidates: [flow, ...others], withPure: [flow, pure, ...others], scale, log };
    for (const [id, part] of Object.entries(PARTS)) {
      if (!ids.includes(id)) continue;
      log(`${id} …`);
      try {
        lines.push(...(await part(bench)));
      } catch (error) {
        log(`${id} failed: ${error instanceof Error ? error.stack : error}`);
        process.exitCode = 1;
      }
    }
    return lines;
  } finally {
    for (const stop of stops) await stop();
  }
}
