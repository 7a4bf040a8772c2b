import * as v from "valibot";
import { anyMap, anything, key, map, required, text } from "./document-forms.ts";
import { WebhookHmac } from "./trigger-sources.ts";

/*
 * A subscription as authors write it: a trigger apart from its playbook, in the form of other programs of this kind. It loads as a trigger
 * of kind `nats` or `webhook`.
 */

/** `spec.dispatch`. */
export const SubscriptionDispatch = map({
  playbook: required(text, "Catalog path of the playbook that is started for each message."),
  payload_from: key(
    text,
    "What its inputs are: `message.json` (default; the same as `message.data`), `message.json.<field>`, `message.headers` or `message`. A map is the inputs, anything else the input `payload`.",
  ),
  input: key(anyMap, "Further inputs, with templates as in a trigger."),
});

/** One entry of `spec.headers.directives`. */
export const SubscriptionDirective = map({
  header: required(text, "Header of the message."),
  controls: required(text, "What it says: `dispatch.idempotency_key`."),
});

/** `spec.headers`. */
export const SubscriptionHeaders = map({ directives: key(v.array(SubscriptionDirective), "What headers may say.") });

/** `spec.runtime`. */
export const SubscriptionRuntime = map({
  batch: key(v.number(), "Messages that are taken and not yet acknowledged. Default 50."),
  timeout_ms: key(v.number(), "Passed over: messages are taken as they come."),
});

/** `spec.ingress.verify`: in this form, or in that of a webhook's `verify`. */
export const SubscriptionVerify = map({
  type: key(text, "hmac_sha256, bearer, basic, or a preset of a webhook's `verify`."),
  preset: key(text, "The same as `type`."),
  header: key(text, "Header with the signature."),
  prefix: key(text, "What stands before the signature, as `sha256=`."),
  secret: key(v.union([text, v.array(text)]), "Credential with the secret."),
  hmac: key(WebhookHmac, "What is signed."),
});

/** `spec.ingress`. */
export const SubscriptionIngress = map({
  gateway_path: required(text, "The address below `/hooks/`."),
  verify: required(SubscriptionVerify, "How the sender is known."),
});

/** `spec`. */
export const SubscriptionSpec = map({
  source: required(text, "nats or webhook."),
  mode: key(text, "pull for nats, push for webhook."),
  activation: key(text, "continuous."),
  auth: key(text, "nats: credential of type `broker`."),
  stream: key(text, "nats: name of the JetStream stream."),
  subject: key(text, "nats: subject of the messages. Default: all of the stream."),
  consumer: key(text, "nats: name of the durable consumer, which is made unless it is there."),
  runtime: key(SubscriptionRuntime, "How messages are taken."),
  ingress: key(SubscriptionIngress, "webhook: its address, and how the sender is known."),
  dispatch: required(SubscriptionDispatch, "What is started."),
  headers: key(SubscriptionHeaders, "What headers of a message may say."),
});

/** `metadata`. */
export const SubscriptionMetadata = map({
  name: required(text, "Name of the trigger."),
  path: key(text, "Catalog path of the document; default the name."),
  description: key(anything, "What it is for."),
  version: key(anything, "Free."),
  tags: key(anything, "Free."),
  labels: key(anything, "Free."),
});

/** The document. */
export const SubscriptionDocument = map({
  apiVersion: required(text, "`<vendor>/v1` or `<vendor>/v2`."),
  kind: required(v.literal("Subscription"), "Subscription."),
  metadata: required(SubscriptionMetadata, "Name and path."),
  spec: required(SubscriptionSpec, "Where messages come from, and what is started."),
});
