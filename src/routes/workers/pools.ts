import type { WorkerPoolItem } from "../../schema/api/workers.ts";
import { POOL_ROUTES } from "../../schema/routes/workers.ts";
import type { Pools } from "../../services/workers/pools.ts";
import { callerOf } from "../http/audit-caller.ts";
import { serve } from "../http/serve.ts";

/** Pools of workers, each with a token of its own. */
export function poolRoutes(pools: Pools) {
  return serve(POOL_ROUTES, {
    list: async ({ json }) => json({ items: (await pools.list()).map(itemOf) }),
    create: async ({ body: { labels = {}, ...body }, json }, c) => {
      const { pool, token } = await pools.create({ ...body, labels }, callerOf(c, POOL_ROUTES.create));
      return json({ ...itemOf(pool), token });
    },
    rotate: async ({ params, json }, c) => {
      const { pool, token } = await pools.rotate(params.name, callerOf(c, POOL_ROUTES.rotate));
      return json({ ...itemOf(pool), token });
    },
    revoke: async ({ params, json }, c) =>
      json(itemOf(await pools.revoke(params.name, callerOf(c, POOL_ROUTES.revoke)))),
  });
}

function itemOf(pool: Awaited<ReturnType<Pools["list"]>>[number]): WorkerPoolItem {
  return {
    name: pool.name,
    paths: pool.paths,
    labels: pool.labels,
    created_by: pool.createdBy,
    created_at: pool.createdAt.toISOString(),
    rotated_at: pool.rotatedAt?.toISOString() ?? null,
    revoked_at: pool.revokedAt?.toISOString() ?? null,
  };
}
