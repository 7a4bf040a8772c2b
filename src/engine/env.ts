import type { Account } from "../language/expression/parsing/budget.ts";
import type { References } from "../language/views/references.ts";
import type { JsonObject } from "../schema/words/json.ts";
import type { Step } from "../schema/words/playbook.ts";
import type { DecisionSealing } from "./sealing/decision-sealing.ts";

/** Inputs that the engine gets by argument: the time, fresh ids, randomness, and payloads that are not inline. */
export interface EngineEnv {
  /** Milliseconds since 1970 (UTC); the time of every event decided in this call. */
  now: number;
  /** A fresh id for a command or a step run; unique, and increasing within an execution. */
  newId(): string;
  references: References;
  /** The allow-listed environment, readable as `env` in templates. */
  env: JsonObject;
  /** What the templates of these decisions may still use together; absent: each has its own budget alone. */
  account?: Account;
  /**
   * Most iterations of one command, for a parallel loop whose document leaves that open. They begin side by side, so it is for
   * iterations that are known to be short. Absent: one.
   */
  iterationsAtOnce?(step: Step): number;
  /** Opens sealed values for decisions, and seals secrets in what is decided. Default: values are used as they are. */
  sealing?: DecisionSealing | undefined;
}
