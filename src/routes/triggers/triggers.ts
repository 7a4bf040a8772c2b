import { randomUUID } from "node:crypto";
import type { Context } from "hono";
import { TRIGGER_ROUTES } from "../../schema/routes/triggers.ts";
import type { AccessAction } from "../../schema/rules/access-rules.ts";
import type { FireItem, TriggerAnswer, TriggerItem } from "../../schema/triggers/answers.ts";
import type { DeliveryItem } from "../../schema/triggers/deliveries.ts";
import { defined } from "../../schema/words/defined.ts";
import { pageSize } from "../../schema/words/wire.ts";
import { type Audit, audited } from "../../services/access/audit.ts";
import type { Triggers } from "../../services/triggers/triggers.ts";
import type { DeliveryLog } from "../../services/webhooks/delivery-log.ts";
import { callerOf } from "../http/audit-caller.ts";
import { idempotencyKey, keyOwner } from "../http/idempotency.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { type RouteHandler, serve } from "../http/serve.ts";
import { pathId } from "../http/validate.ts";

type Row = Awaited<ReturnType<Triggers["find"]>>;
type DeliveryRow = Awaited<ReturnType<DeliveryLog["list"]>>["items"][number];

/** Triggers (control, section 3, rules 33 and 34). */
export function triggerRoutes(triggers: Triggers, log: Pick<DeliveryLog, "list">, audit: Pick<Audit, "record">) {
  /** The trigger of a call, if the caller may do this with its playbook. */
  const find = async (c: Context<RouteEnvironment>, action: AccessAction): Promise<Row> => {
    const row = await triggers.find(pathId(c.req.param("trigger_id") ?? "", "trigger"));
    await c.var.permit(action, row.path);
    return row;
  };
  const change =
    (
      what: "enable" | "disable",
    ): RouteHandler<typeof TRIGGER_ROUTES.enable> & RouteHandler<typeof TRIGGER_ROUTES.disable> =>
    async ({ json }, c) => {
      const route = TRIGGER_ROUTES[what];
      const { triggerId, path, name } = await find(c, "modify");
      const isChanged = await triggers[what](triggerId);
      const detail = { path, name, is_changed: isChanged };
      await audit.record(audited(callerOf(c, route), route.audit.action, `trigger/${triggerId}`, { detail }));
      return json(detailOf(await triggers.find(triggerId)));
    };
  return serve(TRIGGER_ROUTES, {
    list: async ({ query: { limit, cursor, enabled, sort, ...query }, json }, c) => {
      const filter = { ...query, visible: c.var.visible("view"), ...defined({ enabled: flagOf(enabled) }) };
      const size = pageSize(limit);
      if (sort === "next")
        return json({ triggers: (await triggers.soonest(filter, size)).map(itemOf), next_cursor: null });
      const { items, nextCursor } = await triggers.list(filter, { limit: size, ...defined({ cursor }) });
      return json({ triggers: items.map(itemOf), next_cursor: nextCursor });
    },
    detail: async ({ json }, c) => json(detailOf(await find(c, "view"))),
    fire: async ({ json }, c) => {
      const route = TRIGGER_ROUTES.fire;
      const row = await find(c, "execute");
      const given = idempotencyKey(c);
      const key = given === null ? `hand/${randomUUID()}` : `hand/${keyOwner(c)}/${given}`;
      const { fireId, status, executionId, reason, isRepeated } = await triggers.fire(row, { key });
      const of = { path: row.path, name: row.name, fire_id: fireId, status };
      const detail = { ...of, ...defined({ execution_id: executionId ?? undefined }) };
      await audit.record(audited(callerOf(c, route), route.audit.action, `trigger/${row.triggerId}`, { detail }));
      return json({
        fire_id: fireId,
        status,
        ...endOf({ executionId, reason }),
        ...(isRepeated && { duplicate: true as const }),
      });
    },
    enable: change("enable"),
    disable: change("disable"),
    next: async ({ query: { n = "10", from }, json }, c) => {
      const { triggerId, definition } = await find(c, "view");
      const times = await triggers.next(triggerId, Number(n), from === undefined ? undefined : Date.parse(from));
      const timezone = definition.schedule?.timezone ?? null;
      return json({ trigger_id: triggerId, timezone, next: times.map((ms) => new Date(ms).toISOString()) });
    },
    fires: async ({ query: { limit, ...query }, json }, c) => {
      const { triggerId } = await find(c, "view");
      const { items, nextCursor } = await triggers.fires(triggerId, { ...query, limit: pageSize(limit) });
      return json({ fires: items.map(fireOf), next_cursor: nextCursor });
    },
    deliveries: async ({ query: { limit, cursor, refused }, json }, c) => {
      const { triggerId } = await find(c, "view");
      const filter = defined({ cursor, isRefused: flagOf(refused) });
      const { items, nextCursor } = await log.list(triggerId, { ...filter, limit: pageSize(limit) });
      return json({ deliveries: items.map(deliveryOf), next_cursor: nextCursor });
    },
  });
}

function flagOf(text: "true" | "false" | undefined): boolean | undefined {
  return text === undefined ? undefined : text === "true";
}

function itemOf({ triggerId, path, name, kind, enabled, lastFireAt, nextDueAt }: Row): TriggerItem {
  return {
    ...{ trigger_id: triggerId, path, name, kind, enabled },
    last_fire: lastFireAt?.toISOString() ?? null,
    next_fire: nextDueAt?.toISOString() ?? null,
  };
}

function detailOf(row: Row): TriggerAnswer {
  const { document, version, activeSince, definition } = row;
  const { overlap, catchup, input, schedule, webhook, execution, nats, signal } = definition;
  return {
    ...itemOf(row),
    ...{ document, version, active_since: activeSince.toISOString(), overlap, input },
    catchup: { mode: catchup.mode, ...defined({ window_ms: catchup.windowMs }) },
    section: schedule === undefined ? { ...(webhook ?? execution ?? nats ?? signal) } : scheduleOf(schedule),
  };
}

function scheduleOf({ cron, everyMs, timezone, jitterMs }: NonNullable<Row["definition"]["schedule"]>) {
  return everyMs === undefined ? { cron, timezone, jitter_ms: jitterMs } : { every_ms: everyMs, jitter_ms: jitterMs };
}

function endOf({ executionId, reason }: { executionId: string | null; reason: string | null }) {
  return defined({ execution_id: executionId ?? undefined, reason: reason ?? undefined });
}

function fireOf({
  fireId,
  dueAt,
  firedAt,
  status,
  executionId,
  reason,
}: {
  fireId: string;
  dueAt: Date;
  firedAt: Date;
  status: FireItem["status"];
  executionId: string | null;
  reason: string | null;
}): FireItem {
  return {
    ...{ fire_id: fireId, due_at: dueAt.toISOString(), fired_at: firedAt.toISOString(), status },
    ...endOf({ executionId, reason }),
  };
}

function deliveryOf({ deliveryId, verdict, isRefused, count, firstAt, lastAt, ...of }: DeliveryRow): DeliveryItem {
  return {
    ...{ delivery_id: deliveryId, at: firstAt.toISOString(), last_at: lastAt.toISOString(), count },
    ...{ verdict, refused: isRefused },
    ...defined({ reason: of.reason ?? undefined, address: of.address ?? undefined, bytes: of.bytes ?? undefined }),
    ...defined({ execution_id: of.executionId ?? undefined }),
  };
}
