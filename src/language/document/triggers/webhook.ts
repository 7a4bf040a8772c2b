import {
  WebhookHmac,
  WebhookRespond,
  WebhookSection,
  WebhookVerify,
} from "../../../schema/documents/trigger-sources.ts";
import { durationMs } from "../../../schema/rules/durations.ts";
import {
  HMAC_ALGORITHMS,
  HMAC_ENCODINGS,
  type HmacScheme,
  payloadParts,
  REPLAY_WINDOW_MS,
  WEBHOOK_PRESETS,
  type WebhookPreset,
  type WebhookTrigger,
  type WebhookVerification,
  whyNoHookPath,
} from "../../../schema/triggers/webhook.ts";
import { defined } from "../../../schema/words/defined.ts";
import { didYouMean } from "../source/hints.ts";
import { field, isMap, type Place, textOf } from "../source/place.ts";
import { checkKeys, type Reading } from "../source/reading.ts";

/** Names of credentials that one webhook may list: a secret that is changed, and some room. */
const SECRETS_MAX = 8;
/** How long an answer waits for the result, by default and at most: senders and proxies do not wait longer. */
const RESPOND_MS = 20_000;
const RESPOND_MS_MAX = 60_000;
const TOLERANCE_MS_MAX = 86_400_000;

/** `webhook` of a trigger, in one form; reports what is wrong with it. `names`: what its templates can read. */
export function readWebhook(reading: Reading, place: Place, names: ReadonlySet<string>): WebhookTrigger {
  checkKeys(reading, place, WebhookSection);
  const [deduplicate, when] = [field(place, "deduplicate"), field(place, "when")];
  if (deduplicate !== undefined) reading.apart.push({ place: deduplicate, names });
  if (when !== undefined) reading.apart.push({ place: when, names, condition: true });
  const respondMs = readRespond(reading, field(place, "respond"));
  return {
    path: readHookPath(reading, field(place, "path")),
    verify: readVerify(reading, field(place, "verify")),
    ...defined({ deduplicate: textOf(deduplicate), when: when?.value, respondMs }),
  };
}

/** The path of a webhook, which stands at a place; reports one that can be none. */
export function readHookPath(reading: Reading, place: Place | undefined, path = textOf(place) ?? ""): string {
  const why = whyNoHookPath(path);
  if (place === undefined || why === undefined) return path;
  const message = `\`${path}\` cannot be an address below \`/hooks/\`: ${why}`;
  reading.report("wrong-trigger", place, message, "write it as `github/push`");
  return path;
}

function readVerify(reading: Reading, place: Place | undefined): WebhookVerification {
  if (place?.value === "none") return { preset: "none", secrets: [] };
  if (!isMap(place)) return { preset: "none", secrets: [] };
  checkKeys(reading, place, WebhookVerify);
  const wrong = (at: Place, what: string, hint: string) => reading.report("wrong-trigger", at, what, hint);
  const [named, hmac] = [field(place, "preset"), field(place, "hmac")];
  const preset = presetOf(named, hmac);
  if (preset === undefined) {
    // Another word was reported with the shape.
    if (named === undefined)
      wrong(place, "`verify` does not say how the sender is known", `write \`preset\`: ${WEBHOOK_PRESETS.join(", ")}`);
    return { preset: "none", secrets: [] };
  }
  if (hmac !== undefined && preset !== "hmac")
    wrong(hmac, `the preset ${preset} has no \`hmac\``, "keep the one that is meant");
  if (hmac === undefined && preset === "hmac") {
    wrong(place, "`verify` does not say what is signed", "add `hmac: {header: X-Signature}`");
  }
  const scheme = isMap(hmac) ? readHmac(reading, hmac) : undefined;
  return { preset, secrets: readSecrets(reading, place, preset), ...defined({ hmac: scheme }) };
}

function presetOf(named: Place | undefined, hmac: Place | undefined): WebhookPreset | undefined {
  if (named === undefined) return hmac === undefined ? undefined : "hmac";
  return WEBHOOK_PRESETS.find((one) => one === named.value);
}

/** The credentials that `verify` names. */
export function readSecrets(reading: Reading, verify: Place, preset: WebhookPreset): string[] {
  const place = field(verify, "secret");
  const wrong = (at: Place, what: string, hint: string) => reading.report("wrong-trigger", at, what, hint);
  if (place === undefined) {
    if (preset !== "none") wrong(verify, `the preset ${preset} needs a secret`, "add `secret: <name of a credential>`");
    return [];
  }
  if (preset === "none")
    wrong(place, "`none` accepts everything, so it takes no secret", "leave it out, or write the preset that uses it");
  const places = Array.isArray(place.value) ? place.items : [place];
  const names = places.map((one) => textOf(one) ?? "");
  if (names.some((name) => name.trim() === ""))
    wrong(place, "`secret` has an empty name", "write the name of a credential");
  if (names.some((name) => /\{[{%]/.test(name)))
    wrong(
      place,
      "`secret` is the name of a credential, and no template",
      "write the name; nothing else of the delivery is believed yet",
    );
  if (places.length === 0 || places.length > SECRETS_MAX)
    wrong(place, `\`secret\` has ${places.length} names`, `write from 1 to ${SECRETS_MAX}`);
  return names.filter((name) => name !== "");
}

/** `hmac` of `verify`. */
export function readHmac(reading: Reading, place: Place): HmacScheme {
  checkKeys(reading, place, WebhookHmac);
  const [payload, time] = [field(place, "payload"), field(place, "timestamp_header")];
  const text = textOf(payload) ?? "{body}";
  checkPayload(reading, payload ?? place, text, time);
  for (const name of ["header", "timestamp_header"]) checkHeader(reading, field(place, name));
  return {
    header: (textOf(field(place, "header")) ?? "").toLowerCase(),
    algorithm: HMAC_ALGORITHMS.find((one) => one === field(place, "algorithm")?.value) ?? "sha256",
    encoding: HMAC_ENCODINGS.find((one) => one === field(place, "encoding")?.value) ?? "hex",
    prefix: textOf(field(place, "prefix")) ?? "",
    payload: text,
    ...defined({ timestampHeader: textOf(time)?.toLowerCase() }),
    toleranceMs: readMs(reading, field(place, "tolerance"), [1_000, TOLERANCE_MS_MAX]) ?? REPLAY_WINDOW_MS,
  };
}

function checkPayload(reading: Reading, place: Place, text: string, time: Place | undefined): void {
  const wrong = (at: Place, what: string, hint: string) => reading.report("wrong-trigger", at, what, hint);
  const { parts, unknown } = payloadParts(text);
  const has = (of: string) => parts.some((part) => "of" in part && part.of === of);
  for (const name of unknown) {
    const hint = didYouMean(name, ["body", "timestamp"]) ?? "write `{body}`, `{timestamp}` or `{header:<name>}`";
    wrong(place, `\`payload\` has \`{${name}}\`, which means nothing`, hint);
  }
  if (!has("body")) wrong(place, "`payload` has no `{body}`, so anybody could send any body", "add `{body}`");
  if (has("timestamp") && time === undefined)
    wrong(place, "`payload` has `{timestamp}`, and nothing says where it stands", "add `timestamp_header`");
  if (time !== undefined && !has("timestamp"))
    wrong(
      time,
      "the time is not part of what is signed, so anybody could change it",
      "add `{timestamp}` to `payload`, or leave it out",
    );
}

function checkHeader(reading: Reading, place: Place | undefined): void {
  const name = textOf(place);
  if (place === undefined || name === undefined || /^[\w-]+$/.test(name)) return;
  reading.report("wrong-trigger", place, `\`${name}\` is not a header name`, "write it as `X-Signature`");
}

function readRespond(reading: Reading, place: Place | undefined): number | undefined {
  if (place === undefined || place.value === "accepted") return undefined;
  checkKeys(reading, place, WebhookRespond);
  const time = field(field(place, "result"), "timeout");
  return readMs(reading, time, [1_000, RESPOND_MS_MAX]) ?? RESPOND_MS;
}

/** A duration in milliseconds within limits, also reported beyond them; a template is none, as no run is there to render it. */
export function readMs(
  reading: Reading,
  place: Place | undefined,
  [min, max]: readonly [number, number],
): number | undefined {
  if (place === undefined || (typeof place.value !== "string" && typeof place.value !== "number")) return undefined;
  const ms = durationMs(place.value);
  if (ms !== undefined && ms >= min && ms <= max) return ms;
  const message = `\`${place.key}\` must be a duration from ${min / 1_000}s to ${max / 1_000}s, not \`${place.value}\``;
  reading.report("wrong-trigger", place, message, "write it as 30s or 5m");
  return undefined;
}
