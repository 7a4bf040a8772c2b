import {
  SubscriptionDirective,
  SubscriptionDispatch,
  SubscriptionDocument,
  SubscriptionHeaders,
  SubscriptionIngress,
  SubscriptionMetadata,
  SubscriptionRuntime,
  SubscriptionSpec,
  SubscriptionVerify,
} from "../../../schema/documents/subscription-document.ts";
import type { Trigger } from "../../../schema/triggers/trigger.ts";
import {
  REPLAY_WINDOW_MS,
  WEBHOOK_PRESETS,
  type WebhookPreset,
  type WebhookVerification,
} from "../../../schema/triggers/webhook.ts";
import { defined } from "../../../schema/words/defined.ts";
import { isJsonObject } from "../../../schema/words/json.ts";
import { didYouMean } from "../source/hints.ts";
import { field, firstField, type Place, textOf } from "../source/place.ts";
import { checkKeys, type Reading } from "../source/reading.ts";
import { ACK_WAIT_MS, readConsumer } from "./nats.ts";
import { namesOf } from "./read-triggers.ts";
import { readHmac, readHookPath, readSecrets } from "./webhook.ts";

/** Sources that other programs of this kind have, and that nothing here serves. */
const UNSERVED = ["kafka", "pubsub"];
const SOURCES = ["nats", "webhook"] as const;
const IDEMPOTENCY = "dispatch.idempotency_key";

/** The trigger of a subscription, whose shape was checked, and the path of its playbook as written; reports what is wrong with it. */
export function readSubscription(reading: Reading, root: Place): { playbook: string; trigger?: Trigger } {
  checkKeys(reading, root, SubscriptionDocument);
  const metadata = field(root, "metadata");
  checkKeys(reading, metadata, SubscriptionMetadata);
  const spec = field(root, "spec");
  checkKeys(reading, spec, SubscriptionSpec);
  checkKeys(reading, field(spec, "runtime"), SubscriptionRuntime);
  const dispatch = field(spec, "dispatch");
  checkKeys(reading, dispatch, SubscriptionDispatch);
  const source = readSource(reading, field(spec, "source"));
  checkMode(reading, spec, source);
  const playbook = textOf(field(dispatch, "playbook")) ?? "";
  if (source === undefined) return { playbook };
  const input = field(dispatch, "input");
  if (input !== undefined) reading.apart.push({ place: input, names: namesOf(source) });
  const keyHeader = readDirectives(reading, field(spec, "headers"));
  const trigger: Trigger = {
    name: textOf(field(metadata, "name")) ?? "",
    kind: source,
    ...(source === "nats"
      ? { nats: { ...readNatsSource(reading, spec), ...defined({ keyHeader }) } }
      : { webhook: { ...readHookSource(reading, spec), ...defined({ keyHeader }) } }),
    catchup: { mode: "none" },
    overlap: "allow",
    input: isJsonObject(input?.value) ? input.value : {},
    inputFrom: readPayload(reading, field(dispatch, "payload_from")),
  };
  return { playbook, trigger };
}

function readSource(reading: Reading, place: Place | undefined): (typeof SOURCES)[number] | undefined {
  const written = textOf(place);
  if (place === undefined || written === undefined) return undefined;
  const known = SOURCES.find((one) => one === written);
  if (known !== undefined) return known;
  const isUnserved = UNSERVED.includes(written);
  const message = isUnserved
    ? `nothing here reads from \`${written}\``
    : `\`source\` must be nats or webhook, not \`${written}\``;
  const hint = isUnserved
    ? "let the source push to a webhook, or bridge it to a NATS stream"
    : () => didYouMean(written, SOURCES);
  reading.report("wrong-trigger", place, message, hint);
  return undefined;
}

function checkMode(reading: Reading, spec: Place | undefined, source: (typeof SOURCES)[number] | undefined): void {
  const wrong = (at: Place, what: string, hint: string) => reading.report("wrong-trigger", at, what, hint);
  const [mode, activation] = [field(spec, "mode"), field(spec, "activation")];
  const right = source === "nats" ? "pull" : "push";
  if (mode !== undefined && source !== undefined && mode.value !== right)
    wrong(mode, `\`mode\` of the source ${source} is ${right}, not \`${mode.value}\``, "leave it out");
  if (activation !== undefined && activation.value !== "continuous")
    wrong(
      activation,
      `nothing here serves \`activation: ${activation.value}\``,
      "leave it out: messages are taken as they come",
    );
}

function readNatsSource(reading: Reading, spec: Place | undefined): NonNullable<Trigger["nats"]> {
  for (const name of ["auth", "stream"]) {
    if (spec !== undefined && field(spec, name) === undefined)
      reading.report(
        "missing-key",
        spec,
        `\`spec\` has no \`${name}\`, which the source nats needs`,
        `add \`${name}: …\``,
      );
  }
  const consumer = readConsumer(reading, {
    credential: field(spec, "auth"),
    stream: field(spec, "stream"),
    subject: field(spec, "subject"),
    durable: field(spec, "consumer"),
    maxInFlight: field(field(spec, "runtime"), "batch"),
  });
  return { ...consumer, deliver: "all", ackWaitMs: ACK_WAIT_MS };
}

function readHookSource(reading: Reading, spec: Place | undefined): NonNullable<Trigger["webhook"]> {
  const ingress = field(spec, "ingress");
  if (spec !== undefined && ingress === undefined)
    reading.report(
      "missing-key",
      spec,
      "`spec` has no `ingress`, which the source webhook needs",
      "add `ingress: {gateway_path: …, verify: …}`",
    );
  checkKeys(reading, ingress, SubscriptionIngress);
  const path = field(ingress, "gateway_path");
  const verify = field(ingress, "verify");
  checkKeys(reading, verify, SubscriptionVerify);
  return {
    path: readHookPath(reading, path, (textOf(path) ?? "").replace(/^\/(?:hooks\/)?/, "")),
    verify: verify === undefined ? { preset: "none", secrets: [] } : readVerification(reading, verify),
  };
}

function readVerification(reading: Reading, place: Place): WebhookVerification {
  const named = firstField(place, "type", "preset");
  const written = textOf(named) ?? "";
  const preset: WebhookPreset | undefined =
    written === "hmac_sha256" ? "hmac" : WEBHOOK_PRESETS.find((one) => one === written);
  if (preset === undefined) {
    const message = `nothing here verifies by \`${written}\``;
    reading.report("wrong-trigger", named ?? place, message, `write ${["hmac_sha256", ...WEBHOOK_PRESETS].join(", ")}`);
    return { preset: "none", secrets: [] };
  }
  const secrets = readSecrets(reading, place, preset);
  if (preset !== "hmac") return { preset, secrets };
  const [hmac, header] = [field(place, "hmac"), field(place, "header")];
  if (hmac !== undefined) return { preset, secrets, hmac: readHmac(reading, hmac) };
  if (header === undefined)
    reading.report("missing-key", place, "`verify` has no `header`", "add `header: X-Signature`");
  const prefix = textOf(field(place, "prefix")) ?? "";
  const scheme = { algorithm: "sha256", encoding: "hex", payload: "{body}", toleranceMs: REPLAY_WINDOW_MS } as const;
  return { preset, secrets, hmac: { ...scheme, prefix, header: (textOf(header) ?? "").toLowerCase() } };
}

/** The header that names a message; undefined if none does. */
function readDirectives(reading: Reading, headers: Place | undefined): string | undefined {
  checkKeys(reading, headers, SubscriptionHeaders);
  let found: string | undefined;
  for (const item of field(headers, "directives")?.items ?? []) {
    checkKeys(reading, item, SubscriptionDirective);
    const controls = field(item, "controls");
    if (controls?.value === IDEMPOTENCY) found = textOf(field(item, "header"))?.toLowerCase();
    else if (textOf(controls) !== undefined && controls !== undefined)
      reading.report(
        "wrong-trigger",
        controls,
        `no header may say \`${controls.value}\` here`,
        `write \`${IDEMPOTENCY}\`, or leave it out`,
      );
  }
  return found;
}

/** The template that gives the inputs. */
function readPayload(reading: Reading, place: Place | undefined): string {
  const written = (textOf(place) ?? "message.json").trim();
  const [, part, rest = ""] = /^message(?:\.(json|data|headers))?((?:\.[A-Za-z_][\w]*)*)$/.exec(written) ?? [];
  const isKnown = /^message(?:$|\.(?:json|data|headers)(?:\.[A-Za-z_]\w*)*$)/.test(written);
  if (place !== undefined && !isKnown) {
    const hint = "write message.json, message.json.<field>, message.headers or message";
    reading.report("wrong-trigger", place, `\`payload_from\` cannot be \`${written}\``, hint);
  }
  if (part === undefined) return "{{ {'body': body, 'headers': headers} }}";
  return `{{ ${part === "headers" ? "headers" : "body"}${rest} }}`;
}
