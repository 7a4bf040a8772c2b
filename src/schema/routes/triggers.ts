import {
  FireAnswer,
  FireBody,
  FiresAnswer,
  FiresQuery,
  NextAnswer,
  NextQuery,
  TriggerAnswer,
  TriggerChangeBody,
  TriggersAnswer,
  TriggersQuery,
} from "../triggers/answers.ts";
import { BackfillAnswer, BackfillBody } from "../triggers/backfill.ts";
import { DeliveriesAnswer, DeliveriesQuery, HookAnswer } from "../triggers/deliveries.ts";
import { contract } from "./contract.ts";

/** Triggers: what starts playbooks by itself (control, section 3). */
export const TRIGGER_ROUTES = {
  list: contract({
    method: "get",
    path: "/api/triggers",
    summary: "Triggers of the newest versions, with their last and next fires",
    access: "operator",
    user: { action: "view", of: "list" },
    query: TriggersQuery,
    answer: TriggersAnswer,
    refusals: [422],
  }),
  detail: contract({
    method: "get",
    path: "/api/triggers/:trigger_id",
    summary: "One trigger, with what it fires for",
    access: "operator",
    user: { action: "view", of: "asked" },
    answer: TriggerAnswer,
    refusals: [404, 422],
  }),
  fire: contract({
    method: "post",
    path: "/api/triggers/:trigger_id/fire",
    summary:
      "Fires a trigger now, even a disabled one; with an Idempotency-Key it fires once, however often the request is sent",
    access: "operator",
    user: { action: "execute", of: "asked" },
    audit: { action: "trigger.fire", resource: "trigger/:trigger_id" },
    body: FireBody,
    bodyOptional: true,
    answer: FireAnswer,
    status: 202,
    refusals: [404, 413, 422],
  }),
  enable: change("enable", "Turns a trigger on again; times that passed meanwhile are not made up for"),
  disable: change(
    "disable",
    "Turns a trigger off until it is enabled, for later versions too; its queued fires are skipped",
  ),
  next: contract({
    method: "get",
    path: "/api/triggers/:trigger_id/next",
    summary: "The next times of a schedule",
    access: "operator",
    user: { action: "view", of: "asked" },
    query: NextQuery,
    answer: NextAnswer,
    refusals: [404, 422],
  }),
  fires: contract({
    method: "get",
    path: "/api/triggers/:trigger_id/fires",
    summary: "The fires of a trigger, missed and skipped ones too, newest first",
    access: "operator",
    user: { action: "view", of: "asked" },
    query: FiresQuery,
    answer: FiresAnswer,
    refusals: [404, 422],
  }),
  deliveries: contract({
    method: "get",
    path: "/api/triggers/:trigger_id/deliveries",
    summary:
      "The last deliveries of a webhook, refused ones too, newest first: when and whence they came, and why nothing started. None of another kind",
    access: "operator",
    user: { action: "view", of: "asked" },
    query: DeliveriesQuery,
    answer: DeliveriesAnswer,
    refusals: [404, 422],
  }),
} as const;

/** A route that turns a trigger on or off. */
function change<const W extends "enable" | "disable">(what: W, summary: string) {
  return contract({
    method: "post",
    path: `/api/triggers/:trigger_id/${what}` as const,
    summary,
    access: "operator",
    user: { action: "modify", of: "asked" },
    audit: { action: `trigger.${what}`, resource: "trigger/:trigger_id" },
    body: TriggerChangeBody,
    bodyOptional: true,
    answer: TriggerAnswer,
    refusals: [404, 413, 422],
  });
}

/** Making up for times of a schedule (control, section 3, rule 45). */
export const BACKFILL_ROUTES = {
  backfill: contract({
    method: "post",
    path: "/api/triggers/:trigger_id/backfill",
    summary:
      "Starts an execution for each time of a schedule within a range, some at a time, in the background, also of a disabled trigger; or with dry_run says which times these are, and where gaps are. It is a bulk operation: its progress, pause and end are those of /api/executions/bulk/{bulk_id}",
    access: "operator",
    user: { action: "execute", of: "asked" },
    audit: { action: "trigger.backfill", resource: "trigger/:trigger_id" },
    body: BackfillBody,
    answer: BackfillAnswer,
    status: 202,
    refusals: [404, 413, 422],
  }),
} as const;

/** Deliveries of webhooks (control, section 3): who sends them is known by what the trigger says, not by a token. */
export const HOOK_ROUTES = {
  deliver: delivery("post"),
  deliverPut: delivery("put"),
} as const;

/** The route of a delivery. Its body is taken as it comes: its bytes are what was signed. */
function delivery<const M extends "post" | "put">(method: M) {
  return contract({
    method,
    path: "/hooks/:path{.+}",
    summary:
      "Takes a delivery of a webhook: starts the playbook of the trigger that has this path, once however often the same delivery comes. The body is what the sender sends: JSON, a form, or text",
    access: "anonymous",
    bodyLimit: "hook",
    answer: HookAnswer,
    status: 202,
    refusals: [401, 404, 413, 422, 429, 502],
  });
}
