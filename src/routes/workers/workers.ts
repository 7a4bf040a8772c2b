import type { PoolItem } from "../../schema/api/workers.ts";
import { WORKER_ROUTES } from "../../schema/routes/workers.ts";
import { pageSize } from "../../schema/words/wire.ts";
import type { Workers } from "../../services/workers/workers.ts";
import { listening } from "../http/client-signal.ts";
import { serve } from "../http/serve.ts";

/** The pool of workers (Worker protocol). */
export function workerRoutes(workers: Workers, stopping: AbortSignal) {
  return serve(WORKER_ROUTES, {
    register: async ({ body: { name, capacity, labels = {}, capabilities = [], runtime = {} }, json }) => {
      const { runtimeId, leaseMs } = await workers.register({
        ...{ name, capacity, labels, capabilities, about: { ...runtime } },
        ...(runtime.instance !== undefined && { instance: runtime.instance }),
      });
      return json({ status: "ok" as const, runtime_id: runtimeId, lease_ms: leaseMs });
    },
    heartbeat: async ({ body: { name, instance, running, draining = false, wait_ms: waitMs = 0 }, json }, c) => {
      const runs = running.map(({ command_id, attempt }) => ({ commandId: command_id, attempt }));
      const listener = listening(c, stopping);
      try {
        const beat = { name, running: runs, draining, waitMs, ...(instance !== undefined && { instance }) };
        const { cancel, lost, leaseMs } = await workers.heartbeat(beat, listener.signal);
        return json({ status: "ok", cancel, lost, lease_ms: leaseMs });
      } finally {
        listener.done();
      }
    },
    deregister: async ({ body: { name, instance }, json }) => {
      await workers.deregister(name, instance);
      return json({ status: "ok" as const });
    },
    pools: async ({ query: { limit, ...query }, json }) => {
      const { items, nextCursor } = await workers.list({ ...query, limit: pageSize(limit) });
      return json({ items: items.map(itemOf), next_cursor: nextCursor });
    },
  });
}

function itemOf(worker: Awaited<ReturnType<Workers["list"]>>["items"][number]): PoolItem {
  return {
    runtime_id: worker.runtimeId,
    name: worker.name,
    status: worker.isStale ? "stale" : worker.status,
    capacity: worker.capacity,
    running: worker.running,
    labels: worker.labels,
    capabilities: worker.capabilities,
    runtime: worker.about,
    heartbeat_at: worker.heartbeatAt.toISOString(),
    heartbeat_age_ms: worker.heartbeatAgeMs,
    created_at: worker.createdAt.toISOString(),
  };
}
