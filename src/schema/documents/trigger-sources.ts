import * as v from "valibot";
import { anyMap, anything, condition, key, map, required, SECONDS, text, WHEN } from "./document-forms.ts";

/* Sections of a trigger that fires for what others send: webhooks, and messages of a NATS stream (control, section 3). */

/** How the sender of a webhook is known. */
export const WebhookVerify = map({
  preset: key(text, "github, gitlab, stripe, slack, standard_webhooks, hmac, bearer, basic, or none."),
  secret: key(v.union([text, v.array(text)]), "Credential that has the secret; of a list any one fits."),
  hmac: key(anyMap, "Header, algorithm, encoding, prefix, payload, timestamp_header and tolerance of a signature."),
});

/** `webhook` of a trigger. */
export const WebhookSection = map({
  path: required(text, "The address behind `/hooks/`; unique on a server."),
  verify: required(WebhookVerify, "How the sender is known; `none` must be said."),
  deduplicate: key(text, "Template of the delivery's key: a repeat of it starts nothing."),
  when: key(condition, WHEN),
  respond: key(anything, "accepted (default), or `{result: {timeout: 20s}}`."),
});

/** `nats` of a trigger. */
export const NatsSection = map({
  credential: required(text, "Credential of the broker."),
  stream: required(text, "Name of the JetStream stream."),
  subject: key(text, "Subject that is read; default all of the stream."),
  durable: key(text, "Name of the durable consumer."),
  max_in_flight: key(v.number(), "Messages that are being started at once."),
  ack_wait: key(v.union([v.number(), text]), SECONDS),
});
