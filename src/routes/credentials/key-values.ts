import { type Context, Hono } from "hono";
import {
  TransientBody,
  TransientDeleteAnswer,
  TransientGetAnswer,
  TransientKey,
  TransientListAnswer,
  TransientListQuery,
  TransientPutAnswer,
} from "../../schema/api/transient.ts";
import { pageSize } from "../../schema/words/wire.ts";
import type { TransientValues } from "../../services/credentials/key-values.ts";
import { contract } from "../http/contract.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { check, jsonBody, pathId, queryOf } from "../http/validate.ts";

const LIST = contract({
  method: "get",
  path: "/api/executions/:execution_id/transient",
  summary: "The transient values of an execution, by key, without what they hold",
  access: "worker",
  query: TransientListQuery,
  answer: TransientListAnswer,
  refusals: [404, 422],
});

const GET = contract({
  method: "get",
  path: "/api/executions/:execution_id/transient/:key",
  summary: "A transient value of an execution",
  access: "worker",
  answer: TransientGetAnswer,
  refusals: [404, 422],
});

const PUT = contract({
  method: "put",
  path: "/api/executions/:execution_id/transient/:key",
  summary: "Keeps a transient value of an execution that is open, or replaces it",
  access: "worker",
  body: TransientBody,
  answer: TransientPutAnswer,
  refusals: [404, 409, 413, 422],
});

const DELETE = contract({
  method: "delete",
  path: "/api/executions/:execution_id/transient/:key",
  summary: "Deletes a transient value; one that is not there is no error",
  access: "worker",
  answer: TransientDeleteAnswer,
  refusals: [404, 422],
});

/** Contracts of {@link transientRoutes}. */
export const TRANSIENT_CONTRACTS = [LIST, GET, PUT, DELETE];

/** Transient values of executions. */
export function transientRoutes(values: TransientValues) {
  return new Hono<RouteEnvironment>()
    .get(LIST.path, queryOf(LIST.query), async (c) => {
      const { execution_id } = executionOf(c);
      const { limit, cursor } = c.req.valid("query");
      const page = { limit: pageSize(limit), ...(cursor !== undefined && { cursor }) };
      const { items, nextCursor } = await values.list(execution_id, page);
      const told = items.map(({ bytes, updatedAt, ...entry }) => ({
        ...itemOf({ execution_id, key: entry.key }, entry),
        bytes,
        updated_at: updatedAt.toISOString(),
      }));
      return c.json({ items: told, next_cursor: nextCursor } satisfies TransientListAnswer);
    })
    .get(GET.path, async (c) => {
      const place = placeOf(c);
      const found = await values.get(place.execution_id, place.key);
      return c.json({ status: "ok", ...itemOf(place, found), value: found.value } satisfies TransientGetAnswer);
    })
    .put(PUT.path, jsonBody(PUT.body), async (c) => {
      const place = placeOf(c);
      const { value, ttl_seconds } = c.req.valid("json");
      const ttlMs = typeof ttl_seconds === "number" ? ttl_seconds * 1_000 : undefined;
      const saved = await values.put(place.execution_id, place.key, value, ttlMs);
      return c.json({ status: "ok", ...itemOf(place, saved) } satisfies TransientPutAnswer);
    })
    .delete(DELETE.path, async (c) => {
      const place = placeOf(c);
      await values.remove(place.execution_id, place.key);
      return c.json({ status: "success", ...place } satisfies TransientDeleteAnswer);
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
