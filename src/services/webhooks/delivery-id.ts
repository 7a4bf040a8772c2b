import type { WebhookPreset } from "../../schema/triggers/webhook.ts";
import { isJsonObject, type Json, own } from "../../schema/words/json.ts";

/**
 * What a sender calls this delivery, however often it sends it (control, rule 42); undefined where it says nothing. `body` is what the
 * delivery's body means, if it is JSON.
 */
export function deliveryId(
  preset: WebhookPreset,
  headers: Readonly<Record<string, string | undefined>>,
  body: Json,
): string | undefined {
  const field = (name: string) => {
    const value = isJsonObject(body) ? own(body, name) : undefined;
    return typeof value === "string" && value !== "" ? value : undefined;
  };
  switch (preset) {
    case "github":
      return headers["x-github-delivery"];
    case "gitlab":
      // The second one is the same for all webhooks that one event sets off, which comes from versions before 17.4 alone.
      return headers["idempotency-key"] ?? headers["x-gitlab-event-uuid"];
    case "stripe":
      return field("id");
    case "slack":
      return field("event_id") ?? field("trigger_id");
    case "standard_webhooks":
      return headers["webhook-id"];
    default:
      return headers["idempotency-key"];
  }
}

/** Headers that a trigger's templates may read: those that prove something are left out (control, rule 39). */
export function readableHeaders(headers: Readonly<Record<string, string | undefined>>, own: readonly string[]) {
  const readable: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase();
    if (value !== undefined && !SECRET_HEADERS.test(lower) && !own.includes(lower)) readable[lower] = value;
  }
  return readable;
}

/** Logins, cookies, and whatever is called a signature or a token. */
const SECRET_HEADERS = /^(?:authorization|proxy-authorization|cookie|set-cookie)$|signature|token|api-key|secret/;
