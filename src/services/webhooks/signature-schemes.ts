import type { HmacScheme, WebhookPreset } from "../../schema/triggers/webhook.ts";
import { payloadParts, REPLAY_WINDOW_MS } from "../../schema/triggers/webhook.ts";

/** A delivery as it came. */
export interface Delivery {
  /** By their names in lower case; of a repeated one the values, joined by commas. */
  headers: Readonly<Record<string, string | undefined>>;
  /** The bytes that were signed: not what a parser makes of them. */
  body: Buffer;
}

/** What a delivery claims: that these bytes have one of these signatures. */
export interface Claimed {
  algorithm: HmacScheme["algorithm"];
  message: Buffer[];
  signatures: Buffer[];
  /** When it was signed, where the signature covers the time. */
  time?: { atMs: number; toleranceMs: number };
  /** The key of the HMAC from the credential's `secret`; undefined for one that can be none. Default its UTF-8 bytes. */
  keyOf?(secret: string): Buffer | undefined;
}

/** A preset that signs. */
export type SigningPreset = Exclude<WebhookPreset, "gitlab" | "bearer" | "basic" | "none" | "hmac">;

/** Reads what a delivery claims, by the documentation of each provider. A text says why it claims nothing. */
export const SIGNATURE_SCHEMES: Readonly<Record<SigningPreset, (delivery: Delivery) => Claimed | string>> = {
  github({ headers, body }) {
    const given = headers["x-hub-signature-256"];
    if (given === undefined) return missing("x-hub-signature-256");
    const signature = given.startsWith("sha256=") ? decoded(given.slice("sha256=".length), "hex", "sha256") : undefined;
    if (signature === undefined) return malformed("x-hub-signature-256");
    return { algorithm: "sha256", message: [body], signatures: [signature] };
  },
  stripe({ headers, body }) {
    const given = headers["stripe-signature"];
    if (given === undefined) return missing("stripe-signature");
    const items = given.split(",").map((item) => item.trim().split(/=(.*)/s));
    const times = items.filter(([name]) => name === "t");
    const [time] = times;
    const atMs = times.length === 1 ? secondsMs(time?.[1]) : undefined;
    const signatures = items.filter(([name]) => name === "v1").map(([, text = ""]) => decoded(text, "hex", "sha256"));
    const known = all(signatures);
    if (atMs === undefined || known === undefined) return malformed("stripe-signature");
    const message = [Buffer.from(`${time?.[1]}.`), body];
    return { algorithm: "sha256", message, signatures: known, time: { atMs, toleranceMs: REPLAY_WINDOW_MS } };
  },
  slack({ headers, body }) {
    const [given, time] = [headers["x-slack-signature"], headers["x-slack-request-timestamp"]];
    if (given === undefined) return missing("x-slack-signature");
    if (time === undefined) return missing("x-slack-request-timestamp");
    const signature = given.startsWith("v0=") ? decoded(given.slice("v0=".length), "hex", "sha256") : undefined;
    const atMs = secondsMs(time);
    if (signature === undefined) return malformed("x-slack-signature");
    if (atMs === undefined) return malformed("x-slack-request-timestamp");
    const message = [Buffer.from(`v0:${time}:`), body];
    return { algorithm: "sha256", message, signatures: [signature], time: { atMs, toleranceMs: REPLAY_WINDOW_MS } };
  },
  standard_webhooks({ headers, body }) {
    const [id, time, given] = [headers["webhook-id"], headers["webhook-timestamp"], headers["webhook-signature"]];
    if (id === undefined) return missing("webhook-id");
    if (time === undefined) return missing("webhook-timestamp");
    if (given === undefined) return missing("webhook-signature");
    const atMs = secondsMs(time);
    if (atMs === undefined) return malformed("webhook-timestamp");
    // Others than `v1` are signatures of other schemes, by public keys.
    const items = given.split(" ").filter((item) => item.startsWith("v1,"));
    const known = all(items.map((item) => decoded(item.slice("v1,".length), "base64", "sha256")));
    if (known === undefined) return malformed("webhook-signature");
    return {
      algorithm: "sha256",
      message: [Buffer.from(`${id}.${time}.`), body],
      signatures: known,
      time: { atMs, toleranceMs: REPLAY_WINDOW_MS },
      keyOf: (secret) => base64Bytes(secret.replace(/^whsec_/, "")),
    };
  },
};

/** Reads what a delivery claims by a scheme of the author's. */
export function claimedBy(scheme: HmacScheme, { headers, body }: Delivery): Claimed | string {
  const { header, algorithm, encoding, prefix, timestampHeader, toleranceMs } = scheme;
  const given = headers[header];
  if (given === undefined) return missing(header);
  const signature = given.startsWith(prefix)
    ? decoded(given.slice(prefix.length).trim(), encoding, algorithm)
    : undefined;
  if (signature === undefined) return malformed(header);
  const time = timestampHeader === undefined ? undefined : headers[timestampHeader];
  const atMs = momentOf(time);
  if (timestampHeader !== undefined && time === undefined) return missing(timestampHeader);
  if (timestampHeader !== undefined && atMs === undefined) return malformed(timestampHeader);
  const message: Buffer[] = [];
  for (const part of payloadParts(scheme.payload).parts) {
    if ("text" in part) message.push(Buffer.from(part.text));
    else if (part.of === "body") message.push(body);
    else {
      const name = part.of === "header" ? part.name : (timestampHeader ?? "");
      const value = headers[name];
      if (value === undefined) return missing(name);
      message.push(Buffer.from(value));
    }
  }
  return {
    algorithm,
    message,
    signatures: [signature],
    ...(atMs !== undefined && { time: { atMs, toleranceMs } }),
  };
}

/** Most signatures of one header that are looked at: while secrets are changed, senders sign with two. */
const SIGNATURES_MAX = 16;

/** All of them; undefined without any, if one is malformed, or for too many. */
function all(signatures: readonly (Buffer | undefined)[]): Buffer[] | undefined {
  const known = signatures.filter((one) => one !== undefined);
  return known.length === 0 || known.length > SIGNATURES_MAX || known.length < signatures.length ? undefined : known;
}

const BYTES: Readonly<Record<HmacScheme["algorithm"], number>> = { sha1: 20, sha256: 32, sha384: 48, sha512: 64 };

/** The bytes of a signature; undefined for a text of another alphabet or length. */
function decoded(text: string, encoding: HmacScheme["encoding"], algorithm: HmacScheme["algorithm"]) {
  const isHex = encoding === "hex" && /^(?:[0-9a-f]{2})+$/i.test(text);
  const bytes = isHex ? Buffer.from(text, "hex") : encoding === "base64" ? base64Bytes(text) : undefined;
  return bytes?.length === BYTES[algorithm] ? bytes : undefined;
}

/** Strictly: Node's decoder passes over what is no base64. */
function base64Bytes(text: string): Buffer | undefined {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return undefined;
  const bytes = Buffer.from(text, "base64");
  return bytes.toString("base64").replace(/=+$/, "") === text.replace(/=+$/, "") ? bytes : undefined;
}

function secondsMs(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,11}$/.test(text) ? Number(text) * 1_000 : undefined;
}

/** Seconds or milliseconds since 1970, or RFC 3339. */
function momentOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{12,14}$/.test(text)) return Number(text);
  if (!/^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)$/.test(text)) return secondsMs(text);
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : at;
}

function missing(header: string): string {
  return `the header ${header} is missing`;
}

function malformed(header: string): string {
  return `the header ${header} is malformed`;
}
