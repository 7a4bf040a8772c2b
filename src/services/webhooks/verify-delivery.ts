import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { WebhookPreset, WebhookVerification } from "../../schema/triggers/webhook.ts";
import { isJsonObject, type Json, type JsonObject, own } from "../../schema/words/json.ts";
import { type Claimed, claimedBy, type Delivery, SIGNATURE_SCHEMES } from "./signature-schemes.ts";

/** Whether a delivery comes from whom it should. `why` is for the trigger's owner; the sender is told nothing. */
export type Verdict = { isGenuine: true } | { isGenuine: false; why: string };

/**
 * Whether one of these credentials made the proof that a delivery brings. `credentials`: the data of those that the trigger names, as
 * far as they could be read; without any the same work is done with a random key, so that the time says nothing. `nowMs`: since 1970.
 */
export function verifyDelivery(
  { preset, hmac }: Pick<WebhookVerification, "preset" | "hmac">,
  credentials: readonly JsonObject[],
  delivery: Delivery,
  nowMs: number,
): Verdict {
  if (preset === "none") return GENUINE;
  if (preset === "gitlab" || preset === "bearer" || preset === "basic")
    return verifyShown(preset, credentials, delivery);
  const claimed =
    preset !== "hmac"
      ? SIGNATURE_SCHEMES[preset](delivery)
      : hmac === undefined
        ? "the trigger says nothing of its HMAC"
        : claimedBy(hmac, delivery);
  if (typeof claimed === "string") return { isGenuine: false, why: claimed };
  // Before the signature's turn: an old delivery costs nothing, and only its sender learns that it is old.
  const { time } = claimed;
  if (time !== undefined && Math.abs(nowMs - time.atMs) > time.toleranceMs) {
    return { isGenuine: false, why: `its time is more than ${time.toleranceMs / 1_000} s away from now` };
  }
  return verifySigned(claimed, credentials);
}

const GENUINE: Verdict = { isGenuine: true };

/** Every signature is compared with that of every secret: the time says only how many there are. */
function verifySigned({ algorithm, message, signatures, keyOf }: Claimed, credentials: readonly JsonObject[]): Verdict {
  const texts = textsOf(credentials, "secret");
  const keys = texts.map((text) => (keyOf === undefined ? Buffer.from(text) : keyOf(text)));
  const usable = keys.filter((key) => key !== undefined && key.length > 0);
  let isGenuine = false;
  for (const key of usable.length > 0 ? usable : [nobody()]) {
    const hmac = createHmac(algorithm, key ?? nobody());
    for (const part of message) hmac.update(part);
    const expected = hmac.digest();
    for (const signature of signatures) isGenuine = timingSafeEqual(signature, expected) || isGenuine;
  }
  if (isGenuine) return GENUINE;
  return { isGenuine, why: usable.length > 0 ? "its signature is of another secret or body" : noSecret("secret") };
}

/** Presets whose deliveries show the secret itself. */
function verifyShown(
  preset: WebhookPreset & ("gitlab" | "bearer" | "basic"),
  credentials: readonly JsonObject[],
  { headers }: Delivery,
): Verdict {
  const header = preset === "gitlab" ? "x-gitlab-token" : "authorization";
  const given = headers[header];
  if (given === undefined) return { isGenuine: false, why: `the header ${header} is missing` };
  const shown = preset === "gitlab" ? given : shownIn(preset, given);
  if (shown === undefined) return { isGenuine: false, why: `the header ${header} is malformed` };
  const wanted = preset === "basic" ? credentials.flatMap(loginsOf) : textsOf(credentials, "token");
  let isGenuine = false;
  for (const one of wanted.length > 0 ? wanted : [nobody().toString("base64")])
    isGenuine = isSame(shown, one) || isGenuine;
  if (isGenuine) return GENUINE;
  const field = preset === "basic" ? "username and password" : "token";
  return { isGenuine, why: wanted.length > 0 ? `the header ${header} has another secret` : noSecret(field) };
}

function shownIn(preset: "bearer" | "basic", authorization: string): string | undefined {
  if (preset === "bearer") return /^Bearer +(\S+)$/i.exec(authorization)?.[1];
  const encoded = /^Basic +([A-Za-z0-9+/]+={0,2})$/i.exec(authorization)?.[1];
  return encoded === undefined ? undefined : Buffer.from(encoded, "base64").toString("utf8");
}

/** `username:password`, as they are sent. */
function loginsOf(data: JsonObject): string[] {
  const [username, password] = [own(data, "username"), own(data, "password")];
  if (typeof username !== "string" || typeof password !== "string" || password === "") return [];
  return [`${username}:${password}`];
}

/** The texts under a key of credentials, which may be lists of them. An empty one would be known to everybody. */
function textsOf(credentials: readonly JsonObject[], key: string): string[] {
  return credentials.flatMap((data) => {
    const value = isJsonObject(data) ? (own(data, key) as Json | undefined) : undefined;
    return [value].flat().filter((text) => typeof text === "string" && text !== "") as string[];
  });
}

function isSame(given: string, wanted: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(wanted));
}

function nobody(): Buffer {
  return randomBytes(32);
}

function noSecret(field: string): string {
  return `no credential of the trigger could be read that has ${field}`;
}
