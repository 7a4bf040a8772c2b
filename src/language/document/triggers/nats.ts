import { NatsSection } from "../../../schema/documents/trigger-sources.ts";
import type { NatsTrigger } from "../../../schema/triggers/nats-trigger.ts";
import { defined } from "../../../schema/words/defined.ts";
import { field, type Place, textOf } from "../source/place.ts";
import { checkKeys, type Reading } from "../source/reading.ts";
import { readMs } from "./webhook.ts";

const IN_FLIGHT = 50;
const IN_FLIGHT_MAX = 1_000;
/** After which a message that was not acknowledged comes again, by default. */
export const ACK_WAIT_MS = 30_000;
/** Starting an execution takes milliseconds; a message that waits longer has lost its server. */
const ACK_WAIT_MS_MAX = 3_600_000;
/** Longest name of a stream, a consumer or a subject. */
const NAME_MAX = 256;

/** `nats` of a trigger, in one form; reports what is wrong with it. `names`: what its templates can read. */
export function readNats(reading: Reading, place: Place, names: ReadonlySet<string>): NatsTrigger {
  checkKeys(reading, place, NatsSection);
  const when = field(place, "when");
  if (when !== undefined) reading.apart.push({ place: when, names, condition: true });
  return {
    ...readConsumer(reading, {
      credential: field(place, "credential"),
      stream: field(place, "stream"),
      subject: field(place, "subject"),
      durable: field(place, "durable"),
      maxInFlight: field(place, "max_in_flight"),
    }),
    deliver: field(place, "deliver")?.value === "new" ? "new" : "all",
    ackWaitMs: readMs(reading, field(place, "ack_wait"), [1_000, ACK_WAIT_MS_MAX]) ?? ACK_WAIT_MS,
    ...defined({ when: when?.value }),
  };
}

/** The parts of a consumer, which a Subscription has under other names. */
export function readConsumer(
  reading: Reading,
  places: Readonly<Record<"credential" | "stream" | "subject" | "durable" | "maxInFlight", Place | undefined>>,
): Pick<NatsTrigger, "credential" | "stream" | "subject" | "durable" | "maxInFlight"> {
  const { credential, stream, subject, durable, maxInFlight } = places;
  const wrong = (at: Place, what: string, hint: string) => reading.report("wrong-trigger", at, what, hint);
  if (credential !== undefined && (textOf(credential)?.trim() === "" || /\{[{%]/.test(String(credential.value))))
    wrong(credential, `\`${credential.key}\` must be the name of a credential`, "write the name of one of type broker");
  for (const place of [stream, durable]) {
    const name = textOf(place);
    if (place === undefined || name === undefined || (/^[^\s.*>/\\]+$/.test(name) && name.length <= NAME_MAX)) continue;
    wrong(
      place,
      `\`${name}\` cannot be the name of a ${place === stream ? "stream" : "consumer"}`,
      "it has no spaces, dots, `*`, `>` or slashes",
    );
  }
  const written = textOf(subject);
  if (subject !== undefined && written !== undefined && !isSubject(written))
    wrong(subject, `\`${written}\` cannot be a subject`, "write it as `orders.created`, `orders.*` or `orders.>`");
  const count = maxInFlight?.value;
  const isCount = typeof count === "number" && Number.isInteger(count) && count >= 1 && count <= IN_FLIGHT_MAX;
  if (maxInFlight !== undefined && typeof count === "number" && !isCount)
    wrong(
      maxInFlight,
      `\`${maxInFlight.key}\` must be a whole number from 1 to ${IN_FLIGHT_MAX}, not \`${count}\``,
      `leave it out for ${IN_FLIGHT}`,
    );
  return {
    credential: textOf(credential) ?? "",
    stream: textOf(stream) ?? "",
    ...defined({ subject: written, durable: textOf(durable) }),
    maxInFlight: isCount ? count : IN_FLIGHT,
  };
}

function isSubject(text: string): boolean {
  if (text.length > NAME_MAX || !/^[^\s]+$/.test(text)) return false;
  const tokens = text.split(".");
  return tokens.every(
    (token, index) =>
      token !== "" && (!/[*>]/.test(token) || token === "*" || (token === ">" && index === tokens.length - 1)),
  );
}
