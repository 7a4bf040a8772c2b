import type { References } from "../language/views/references.ts";
import type { JsonObject } from "../schema/words/json.ts";
import type { DecisionSealing } from "./sealing/decision-sealing.ts";

/** What the engine cannot know by itself: the time, fresh ids, chance, and payloads that are not inline. */
export interface EngineEnv {
  /** Milliseconds since 1970 (UTC); the time of every event decided in this call. */
  now: number;
  /** A fresh id for a command or a step run; unique, and growing within an execution. */
  newId(): string;
  references: References;
  /** The allow-listed environment, readable as `env` in templates. */
  env: JsonObject;
  /** Opens what is sealed for decisions, and seals what is decided. Default: values are what they are. */
  sealing?: DecisionSealing | undefined;
}
