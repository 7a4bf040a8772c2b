import type { JsonObject } from "../../../src/schema/words/json.ts";

/** Something to run on both runtimes. */
export interface Scenario {
  name: string;
  /** Catalog path of the playbook to run. */
  path: string;
  workload?: JsonObject;
  /** Run no further than this step. */
  target?: string;
  /**
   * What is compared of the events' order: all of it (`total`), or, where work goes on at the same time, that of each step and
   * iteration (`parts`).
   */
  order: "total" | "parts";
  /** How it must end, so that two runtimes that fail alike are no success. */
  ends: "COMPLETED" | "FAILED";
}
