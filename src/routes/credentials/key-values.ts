import type { Context } from "hono";
import { TransientKey } from "../../schema/api/transient.ts";
import { TRANSIENT_ROUTES } from "../../schema/routes/credentials.ts";
import { defined } from "../../schema/words/defined.ts";
import { pageSize } from "../../schema/words/wire.ts";
import type { TransientValues } from "../../services/credentials/key-values.ts";
import { serve } from "../http/serve.ts";
import { check, pathId } from "../http/validate.ts";

/** Transient values of executions. */
export function transientRoutes(values: TransientValues) {
  return serve(TRANSIENT_ROUTES, {
    list: async ({ query: { limit, cursor }, json }, c) => {
      const { execution_id } = executionOf(c);
      const page = { limit: pageSize(limit), ...defined({ cursor }) };
      const { items, nextCursor } = await values.list(execution_id, page);
      const told = items.map(({ bytes, updatedAt, ...entry }) => ({
        ...itemOf({ execution_id, key: entry.key }, entry),
        bytes,
        updated_at: updatedAt.toISOString(),
      }));
      return json({ items: told, next_cursor: nextCursor });
    },
    get: async ({ json }, c) => {
      const place = placeOf(c);
      const found = await values.get(place.execution_id, place.key);
      return json({ status: "ok", ...itemOf(place, found), value: found.value });
    },
    put: async ({ body: { value, ttl_seconds }, json }, c) => {
      const place = placeOf(c);
      const ttlMs = typeof ttl_seconds === "number" ? ttl_seconds * 1_000 : undefined;
      const saved = await values.put(place.execution_id, place.key, value, ttlMs);
      return json({ status: "ok", ...itemOf(place, saved) });
    },
    delete: async ({ json }, c) => {
      const place = placeOf(c);
      await values.remove(place.execution_id, place.key);
      return json({ status: "success", ...place });
    },
  });
}

function executionOf(c: Context): { execution_id: string } {
  return { execution_id: pathId(c.req.param("execution_id") ?? "", "execution") };
}

function placeOf(c: Context): { execution_id: string; key: string } {
  return { ...executionOf(c), key: check(TransientKey, c.req.param("key"), "The key") };
}

function itemOf(
  place: { execution_id: string; key: string },
  { revision, expiresAt }: { revision: number; expiresAt: Date | null },
) {
  return { ...place, revision, expires_at: expiresAt?.toISOString() ?? null };
}
