import { isUtf8 } from "node:buffer";
import type { Context } from "hono";
import { HOOK_ROUTES } from "../../schema/routes/triggers.ts";
import { HOOK_BYTES_MAX, type HookAnswer } from "../../schema/triggers/deliveries.ts";
import { defined } from "../../schema/words/defined.ts";
import type { Json, JsonObject } from "../../schema/words/json.ts";
import { maskSealed } from "../../schema/words/sealed.ts";
import type { HookDelivery, HookOutcome, Webhooks } from "../../services/webhooks/webhooks.ts";
import { listening } from "../http/client-signal.ts";
import { parseJson, readBody } from "../http/read-body.ts";
import { peerOf, type RouteEnvironment } from "../http/request-context.ts";
import { serve } from "../http/serve.ts";

/** Deliveries of webhooks (control, rules 39 to 43). */
export function hookRoutes(webhooks: Webhooks, stopping: AbortSignal) {
  const take = {
    readsBody: async ({ params }: { params: Readonly<Record<"path", string>> }, c: Context<RouteEnvironment>) => {
      const outcome = await webhooks.take(deliveryOf(c, params.path), () => listening(c, stopping));
      return answered(c, outcome);
    },
  };
  return serve(HOOK_ROUTES, { deliver: take, deliverPut: take });
}

function deliveryOf(c: Context<RouteEnvironment>, path: string): HookDelivery {
  return {
    path,
    method: c.req.method,
    headers: c.req.header(),
    query: c.req.query(),
    read: () => readBody(c.req.raw, HOOK_BYTES_MAX),
    parse: (bytes) => meaningOf(bytes, c.req.header("content-type") ?? ""),
    ...defined({ address: peerOf(c) }),
    requestId: c.get("requestId"),
  };
}

function answered(c: Context, outcome: HookOutcome): Response {
  const answer: HookAnswer = {
    ...defined({ execution_id: outcome.executionId, status: outcome.status, result: outcome.result }),
    ...(outcome.isQueued === true && { queued: true as const }),
    ...(outcome.isRepeated === true && { duplicate: true as const }),
    ...(outcome.isSkipped === true && { skipped: true as const }),
    ...defined({ reason: outcome.reason, challenge: outcome.challenge }),
  };
  return c.body(maskSealed(JSON.stringify(answer)), statusOf(outcome), { "content-type": "application/json" });
}

function statusOf({ isSkipped, challenge, hasEnded, status }: HookOutcome): 200 | 202 | 502 {
  if (isSkipped === true || challenge !== undefined) return 200;
  if (hasEnded !== true) return 202;
  return status === "COMPLETED" ? 200 : 502;
}

/**
 * What a body means to templates: JSON, whatever its content type says, as `curl -d` says it is a form; else a form's fields, of a
 * repeated one the last; else text. Throws `FlowError` INVALID_INPUT for what says that it is JSON and is not.
 */
function meaningOf(bytes: Buffer, contentType: string): Json {
  if (/^application\/(?:[\w.-]+\+)?json\b/i.test(contentType))
    return bytes.length === 0 ? null : (parseJson(bytes) as Json);
  const text = bytes.toString("utf8");
  if (/^\s*[[{]/.test(text) && isUtf8(bytes)) {
    try {
      return parseJson(bytes) as Json;
    } catch {
      // Text that begins like JSON.
    }
  }
  if (!/^application\/x-www-form-urlencoded\b/i.test(contentType)) return text;
  return Object.fromEntries(new URLSearchParams(text)) as JsonObject;
}
