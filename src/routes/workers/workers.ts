import { Hono } from "hono";
import {
  DeregisterAnswer,
  DeregisterBody,
  HeartbeatAnswer,
  HeartbeatBody,
  type PoolItem,
  PoolsAnswer,
  PoolsQuery,
  RegisterWorkerAnswer,
  RegisterWorkerBody,
} from "../../schema/api/workers.ts";
import { pageSize } from "../../schema/words/wire.ts";
import type { Workers } from "../../services/workers/workers.ts";
import { listening } from "../http/client-signal.ts";
import { contract } from "../http/contract.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { jsonBody, queryOf } from "../http/validate.ts";

const REGISTER = contract({
  method: "post",
  path: "/api/worker/pool/register",
  summary: "Registers a worker under its name, or registers it again",
  access: "worker",
  body: RegisterWorkerBody,
  answer: RegisterWorkerAnswer,
  refusals: [413, 422],
});

const HEARTBEAT = contract({
  method: "post",
  path: "/api/worker/pool/heartbeat",
  summary:
    "Renews the leases of what a worker runs, and tells it what to stop, at once with `wait_ms`; 404 `unknown` tells it to register again, 409 that another process has registered under its name",
  access: "worker",
  body: HeartbeatBody,
  answer: HeartbeatAnswer,
  refusals: [404, 409, 413, 422],
});

const DEREGISTER = contract({
  method: "post",
  path: "/api/worker/pool/deregister",
  summary: "Marks a worker offline; what it still holds may be claimed by others at once",
  access: "worker",
  body: DeregisterBody,
  answer: DeregisterAnswer,
  refusals: [413, 422],
});

const POOLS = contract({
  method: "get",
  path: "/api/worker/pools",
  summary: "The workers, in the order of their names",
  access: "worker",
  user: { permission: "view_operations" },
  query: PoolsQuery,
  answer: PoolsAnswer,
  refusals: [422],
});

/** Contracts of {@link workerRoutes}. */
export const WORKER_CONTRACTS = [REGISTER, HEARTBEAT, DEREGISTER, POOLS];

/** The pool of workers (Worker protocol). */
export function workerRoutes(workers: Workers, stopping: AbortSignal) {
  return new Hono<RouteEnvironment>()
    .post(REGISTER.path, jsonBody(REGISTER.body), async (c) => {
      const { name, capacity, labels = {}, capabilities = [], runtime = {} } = c.req.valid("json");
      const { runtimeId, leaseMs } = await workers.register({
        ...{ name, capacity, labels, capabilities, about: { ...runtime } },
        ...(runtime.instance !== undefined && { instance: runtime.instance }),
      });
      return c.json({ status: "ok" as const, runtime_id: runtimeId, lease_ms: leaseMs });
    })
    .post(HEARTBEAT.path, jsonBody(HEARTBEAT.body), async (c) => {
      const { name, instance, running, draining = false, wait_ms: waitMs = 0 } = c.req.valid("json");
      const runs = running.map(({ command_id, attempt }) => ({ commandId: command_id, attempt }));
      const listener = listening(c, stopping);
      try {
        const beat = { name, running: runs, draining, waitMs, ...(instance !== undefined && { instance }) };
        const { cancel, lost, leaseMs } = await workers.heartbeat(beat, listener.signal);
        return c.json({ status: "ok", cancel, lost, lease_ms: leaseMs } satisfies HeartbeatAnswer);
      } finally {
        listener.done();
      }
    })
    .post(DEREGISTER.path, jsonBody(DEREGISTER.body), async (c) => {
      const { name, instance } = c.req.valid("json");
      await workers.deregister(name, instance);
      return c.json({ status: "ok" as const });
    })
    .get(POOLS.path, queryOf(POOLS.query), async (c) => {
      const { limit, ...query } = c.req.valid("query");
      const { items, nextCursor } = await workers.list({ ...query, limit: pageSize(limit) });
      return c.json({ items: items.map(itemOf), next_cursor: nextCursor } satisfies PoolsAnswer);
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
