/** One workflow of the benchmark, the same for everyone who runs it. */
export type Work =
  /** `steps` steps one after another that do nothing. */
  | { kind: "chain"; steps: number }
  /** `items` steps side by side that do nothing, and a join. */
  | { kind: "fan"; items: number }
  /** `steps` steps one after another, each with a result of `bytes` bytes that does not compress. */
  | { kind: "payload"; steps: number; bytes: number };

/**
 * What is measured. Each candidate runs in separate processes, and all of them at the same time: an idle one costs next to
 * nothing.
 */
export interface Candidate {
  name: "flow" | "flow, pure" | "DBOS" | "Restate";
  /** Its database on the run's PostgreSQL. Absent: it keeps its own log. */
  database?: string;
  /** Starts one workflow and resolves when its caller knows the result; rejects when it failed or took over two minutes. */
  run(work: Work): Promise<void>;
  /** Ends its processes. */
  stop(): Promise<void>;
}

/** Longest time that a workflow may take, ms: then something hangs. */
export const RUN_MAX_MS = 120_000;
