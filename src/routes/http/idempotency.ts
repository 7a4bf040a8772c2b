import { createHash } from "node:crypto";
import type { Context } from "hono";
import { IDEMPOTENCY_KEY_MAX } from "../../schema/api/events.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { RouteEnvironment } from "./request-context.ts";

/** The `Idempotency-Key` of a request, or null. Throws `FlowError` INVALID_INPUT if it is too long or not printable. */
export function idempotencyKey(c: Context): string | null {
  const key = c.req.header("idempotency-key") ?? "";
  if (key === "") return null;
  if (key.length <= IDEMPOTENCY_KEY_MAX && /^[\x20-\x7e]+$/.test(key)) return key;
  const rule = `1 to ${IDEMPOTENCY_KEY_MAX} visible ASCII characters`;
  throw new FlowError("INVALID_INPUT", `The header 'Idempotency-Key' is not valid: it must be ${rule}`);
}

/** Whose idempotency keys these are: one user's are not another's. */
export function keyOwner(c: Context<RouteEnvironment>): string {
  const user = c.get("user");
  return user === undefined ? c.get("role") : `user:${user.userId}`;
}

/**
 * SHA-256 of a body, in hex: by it a key that was used with another body is known. What follows it counts by its own SHA-256, which is
 * known already.
 */
export function bodySha256(body: Uint8Array, attached: readonly { sha256: string }[] = []): string {
  const hash = createHash("sha256").update(body);
  for (const { sha256 } of attached) hash.update(sha256);
  return hash.digest("hex");
}
