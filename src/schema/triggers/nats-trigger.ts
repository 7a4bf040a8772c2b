import type { Json } from "../words/json.ts";

/** `nats` of a trigger, normalised: whose messages it fires for. */
export interface NatsTrigger {
  /** Name of the credential of the broker. */
  credential: string;
  stream: string;
  /** Absent: all of the stream. */
  subject?: string;
  /** Name of the durable consumer; absent: one of the trigger's own. */
  durable?: string;
  /** Where a consumer that is made begins. */
  deliver: "all" | "new";
  /** Messages that are taken and not yet acknowledged. */
  maxInFlight: number;
  /** After which the broker sends a message again that was not acknowledged. */
  ackWaitMs: number;
  /** Header with the message's key, in lower case. Without it the key is the message's place in its stream. */
  keyHeader?: string;
  /** Condition over the message: where it does not hold, nothing is started. */
  when?: Json;
}
