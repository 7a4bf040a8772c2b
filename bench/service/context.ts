import type { Candidate } from "../candidates/candidate.ts";
import type { FlowCandidate } from "../candidates/flow.ts";
import type { BenchPostgres } from "../candidates/postgres.ts";
import type { Scale } from "./scale.ts";

/** What each part of the service's benchmark works with. */
export interface ServiceBench {
  server: BenchPostgres;
  candidates: readonly Candidate[];
  /** The same, and flow once more, with steps that the server runs because they have no effects. */
  withPure: readonly Candidate[];
  /** The first of the candidates, for measurements that only flow has. */
  flow: FlowCandidate;
  scale: Scale;
  log(line: string): void;
}
