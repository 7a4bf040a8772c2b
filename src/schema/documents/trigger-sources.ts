import * as v from "valibot";
import { HMAC_ALGORITHMS, HMAC_ENCODINGS, WEBHOOK_PRESETS } from "../triggers/webhook.ts";
import { byShape, condition, key, map, required, text, WHEN } from "./document-forms.ts";

/* Sections of a trigger that fires for what others send: webhooks, and messages of a NATS stream (control, section 3). */

const duration = v.union([v.number(), text]);

/** `hmac` of `verify`: the signature of a provider without a preset. */
export const WebhookHmac = map({
  header: required(text, "Header with the signature."),
  algorithm: key(v.picklist(HMAC_ALGORITHMS), "Hash of the HMAC. Default sha256."),
  encoding: key(v.picklist(HMAC_ENCODINGS), "How the signature is written. Default hex."),
  prefix: key(text, "What stands before the signature, as `sha256=`."),
  payload: key(
    text,
    "What is signed: a text with `{body}`, and maybe `{timestamp}` and `{header:<name>}`. Default `{body}`.",
  ),
  timestamp_header: key(text, "Header with the time of the signature, which must be part of what is signed."),
  tolerance: key(duration, "How far that time may be from now, as `5m`. Default 5m."),
});

const verify = map({
  preset: key(v.picklist(WEBHOOK_PRESETS), "How the sender proves who it is; `none` accepts everything from anybody."),
  secret: key(
    v.union([text, v.array(text)]),
    "Credential with the secret; of several any one fits, as while a secret is changed.",
  ),
  hmac: key(WebhookHmac, "What is signed, for senders without a preset."),
});

/** `verify` of a webhook. */
export const WebhookVerify = verify;

const result = map({
  result: required(
    map({ timeout: key(duration, "How long the answer waits. Default 20s, 60s at most.") }),
    "Waits for the result.",
  ),
});
const respond = v.union([v.picklist(["accepted", "result"]), result]);

/** `webhook` of a trigger. */
export const WebhookSection = map({
  path: required(text, "The address below `/hooks/`, unique on a server: `github/push`."),
  verify: required(
    byShape(v.union([v.literal("none"), verify]), (value) => (typeof value === "string" ? v.literal("none") : verify)),
    "How the sender is known. To accept everything, say so: `none`.",
  ),
  deduplicate: key(
    text,
    "Key of the delivery, with templates: for 24 h a repeat of it starts nothing. Default: the id that the preset's sender gives it.",
  ),
  when: key(condition, `${WHEN} Where it does not hold, nothing is started.`),
  respond: key(
    byShape(respond, (value) => (typeof value === "string" ? v.picklist(["accepted", "result"]) : result)),
    "`accepted` (default) answers at once, `result: {timeout: 20s}` with the execution's result.",
  ),
});

/** Form of {@link WebhookSection}'s `respond` with a time. */
export const WebhookRespond = result;

/** `nats` of a trigger. */
export const NatsSection = map({
  credential: required(text, "Credential of type `broker`."),
  stream: required(text, "Name of the JetStream stream."),
  subject: key(text, "Subject of the messages, as `orders.>`. Default: all of the stream."),
  durable: key(
    text,
    "Name of the durable consumer, which is made unless it is there. Default: one of the trigger's own.",
  ),
  deliver: key(
    v.picklist(["all", "new"]),
    "Where a consumer that is made begins: at the stream's first message (default), or after its last.",
  ),
  max_in_flight: key(v.number(), "Messages that are taken and not yet acknowledged, from 1 to 1,000. Default 50."),
  ack_wait: key(duration, "After which a message that was not acknowledged comes again. Default 30s."),
  when: key(condition, `${WHEN} Where it does not hold, the message is acknowledged, and nothing is started.`),
});
