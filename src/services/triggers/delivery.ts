import type { JsonObject } from "../../schema/words/json.ts";

/** What a trigger fires for. */
export interface Delivery {
  /** What makes it this fire: the trigger fires for each key once. */
  key: string;
  /** Its time, or when it came, milliseconds since 1970. Default: now. */
  dueAt?: number;
  /** Names for the templates of `input`, beside `trigger` and `env`. */
  names?: JsonObject;
  /** Further fields of `trigger` in these templates. */
  about?: JsonObject;
  /** Starts however many executions of the trigger are open. */
  always?: boolean;
  /** The execution whose end it is for. */
  causeId?: string;
  /** What has become of it already: the row is all that is written. */
  verdict?: { status: "skipped" | "failed"; reason: string };
}
