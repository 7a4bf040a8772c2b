import type { Json } from "../words/json.ts";

/** How a delivery of a webhook proves who sent it; the first five are what providers of that name send. */
export const WEBHOOK_PRESETS = [
  "github",
  "gitlab",
  "stripe",
  "slack",
  "standard_webhooks",
  "hmac",
  "bearer",
  "basic",
  "none",
] as const;
/** One of {@link WEBHOOK_PRESETS}. */
export type WebhookPreset = (typeof WEBHOOK_PRESETS)[number];

/** Hashes that an HMAC may be made with. SHA-1 is broken for signatures of documents, and not in an HMAC. */
export const HMAC_ALGORITHMS = ["sha256", "sha384", "sha512", "sha1"] as const;
/** How the bytes of an HMAC are written in a header. */
export const HMAC_ENCODINGS = ["hex", "base64"] as const;

/** What a provider without a preset signs, and how it sends it. */
export interface HmacScheme {
  /** Header with the signature, in lower case. */
  header: string;
  algorithm: (typeof HMAC_ALGORITHMS)[number];
  encoding: (typeof HMAC_ENCODINGS)[number];
  /** What stands before the signature, as `sha256=`. */
  prefix: string;
  /** What is signed: a text with `{body}`, and maybe `{timestamp}` and `{header:<name>}`. */
  payload: string;
  /** Header with the time of the signature, in lower case. */
  timestampHeader?: string;
  /** How far that time may be from now, milliseconds. */
  toleranceMs: number;
}

/** `verify` of a webhook. */
export interface WebhookVerification {
  preset: WebhookPreset;
  /** Names of credentials, any of which may have made the proof. Empty exactly for `none`. */
  secrets: string[];
  /** Present exactly for `hmac`. */
  hmac?: HmacScheme;
}

/** `webhook` of a trigger, normalised. */
export interface WebhookTrigger {
  /** The address below `/hooks/`. */
  path: string;
  verify: WebhookVerification;
  /** Key of a delivery, with templates. */
  deduplicate?: string;
  /** Header with the delivery's key, in lower case. Without it the key is that of the preset. */
  keyHeader?: string;
  /** Condition over the delivery: where it does not hold, nothing is started. */
  when?: Json;
  /** How long the answer waits for the execution's result, milliseconds; absent: it does not wait. */
  respondMs?: number;
}

/** Longest path of a webhook, in characters. */
export const HOOK_PATH_MAX = 200;

/** Why a text can be no path of a webhook: it is written into the settings of other programs, so it has no character to escape. */
export function whyNoHookPath(path: string): string | undefined {
  if (path.length > HOOK_PATH_MAX) return `it has ${path.length} characters, ${HOOK_PATH_MAX} at most are allowed`;
  if (path.startsWith("/") || path.endsWith("/")) return "it begins or ends with a slash";
  if (!/^[\w.~/-]+$/.test(path)) return "it has other characters than letters, digits, and `-`, `_`, `.`, `~`, `/`";
  if (path.split("/").some((segment) => segment === "" || segment === "." || segment === ".."))
    return "a part between its slashes is empty, `.` or `..`";
  return undefined;
}

/** How far the time of a signature may be from now, before and after, milliseconds. */
export const REPLAY_WINDOW_MS = 300_000;

/** A part of what is signed. */
export type PayloadPart = { text: string } | { of: "body" } | { of: "timestamp" } | { of: "header"; name: string };

/** The parts of the `payload` of an HMAC scheme; a placeholder that means nothing is given back as its name. */
export function payloadParts(payload: string): { parts: PayloadPart[]; unknown: string[] } {
  const parts: PayloadPart[] = [];
  const unknown: string[] = [];
  for (const piece of payload.split(/(\{[^{}]*\})/)) {
    const name = /^\{([^{}]*)\}$/.exec(piece)?.[1];
    const header = /^header:([\w-]+)$/.exec(name ?? "")?.[1];
    if (name === undefined) parts.push({ text: piece });
    else if (name === "body" || name === "timestamp") parts.push({ of: name });
    else if (header !== undefined) parts.push({ of: "header", name: header.toLowerCase() });
    else unknown.push(name);
  }
  return { parts, unknown };
}
