import { isUtf8 } from "node:buffer";
import { compileCondition } from "../../language/template/template.ts";
import { objectScope } from "../../language/views/scope.ts";
import type { TriggerRow } from "../../repositories/triggers/triggers.ts";
import type { NatsTrigger } from "../../schema/triggers/nats-trigger.ts";
import { defined } from "../../schema/words/defined.ts";
import { messageOf } from "../../schema/words/errors.ts";
import type { Json, JsonObject } from "../../schema/words/json.ts";
import type { Delivery } from "../triggers/delivery.ts";
import { fireKey } from "../triggers/fire-key.ts";
import type { Triggers } from "../triggers/triggers.ts";

/** A message of a stream. */
export interface IncomingMessage {
  subject: string;
  data: Uint8Array;
  headers: Record<string, string>;
  sequence: number;
  timestampNanos: number;
  isRedelivered: boolean;
}

/**
 * What a trigger fires for a message. Its key is the message's place in its stream, so a message that comes again starts nothing; with its
 * time, because a stream that was made anew counts from 1 again.
 */
export function messageDelivery(
  { scope }: Pick<Triggers, "scope">,
  trigger: TriggerRow,
  message: IncomingMessage,
  now: number,
): Delivery {
  const { stream, when, keyHeader } = trigger.definition.nats as NatsTrigger;
  const { sequence, timestampNanos, subject, headers, isRedelivered } = message;
  const dueAt = Math.floor(timestampNanos / 1e6);
  const names: JsonObject = {
    body: meaningOf(message.data),
    headers,
    subject,
    message: { stream, sequence, time: new Date(dueAt).toISOString(), redelivered: isRedelivered },
  };
  const given = when === undefined ? {} : scope(trigger, { dueAt, firedAt: now, names });
  const verdict = when === undefined ? undefined : verdictOf(when, given, now);
  const named = keyHeader === undefined ? undefined : headers[keyHeader];
  const key = named ? `key/${fireKey(named)}` : `${stream}/${sequence}/${timestampNanos}`;
  return { key, dueAt, names, ...defined({ verdict }) };
}

function verdictOf(when: Json, given: JsonObject, now: number): Delivery["verdict"] {
  try {
    if (compileCondition(when).test(objectScope(given), { now: () => now })) return undefined;
    return { status: "skipped", reason: "Its `when` does not hold" };
  } catch (error) {
    return { status: "failed", reason: `Its \`when\` failed: ${messageOf(error)}` };
  }
}

/** JSON where it is JSON, else text, else base64. */
function meaningOf(data: Uint8Array): Json {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  if (!isUtf8(bytes)) return bytes.toString("base64");
  const text = bytes.toString("utf8");
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}
