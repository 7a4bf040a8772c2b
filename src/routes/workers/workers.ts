import { randomBytes } from "node:crypto";
import type { ClaimSecrets } from "../../platform/crypto/claim-secrets.ts";
import type { PoolItem } from "../../schema/api/workers.ts";
import { WORKER_ROUTES } from "../../schema/routes/workers.ts";
import { labelsOf, SERVER_WORKER_PREFIX } from "../../schema/rules/pool-label.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import { pageSize } from "../../schema/words/wire.ts";
import type { Workers } from "../../services/workers/workers.ts";
import { provenInstance, WORKER_HEADER } from "../http/authenticate.ts";
import { listening } from "../http/client-signal.ts";
import { serve } from "../http/serve.ts";

/** Bytes of the identity that a process gets which sends none. */
const INSTANCE_BYTES = 12;

/** The pool of workers (Worker protocol). */
export function workerRoutes(workers: Workers, secrets: ClaimSecrets, stopping: AbortSignal) {
  return serve(WORKER_ROUTES, {
    register: async ({ body: { name, capacity, labels = {}, capabilities = [], runtime = {} }, json }, c) => {
      const pool = c.get("pool");
      if (name.startsWith(SERVER_WORKER_PREFIX)) throw reservedName(name);
      const shown = labelsOf({ ...labels, ...pool?.labels }, pool?.name) ?? {};
      const entry = { name, capacity, labels: shown, capabilities };
      if (c.get("role") !== "worker") {
        const given = defined({ instance: runtime.instance });
        const { runtimeId, leaseMs } = await workers.register({ ...entry, about: { ...runtime }, ...given });
        return json({ status: "ok" as const, runtime_id: runtimeId, lease_ms: leaseMs });
      }
      const instance = runtime.instance ?? randomBytes(INSTANCE_BYTES).toString("base64url");
      const secret = c.req.header(WORKER_HEADER);
      const { runtimeId, leaseMs } = await workers.register({
        ...{ ...entry, instance, about: { ...runtime, instance } },
        replaces: [instance, secret === undefined ? undefined : secrets.instanceOf(secret, name)],
      });
      const worker_secret = secrets.ofWorker(name, instance);
      return json({ status: "ok" as const, runtime_id: runtimeId, lease_ms: leaseMs, worker_secret });
    },
    heartbeat: async ({ body: { name, instance, running, draining = false, wait_ms: waitMs = 0 }, json }, c) => {
      const own = provenInstance(c, secrets, name) ?? instance;
      const runs = running.map(({ command_id, attempt }) => ({ commandId: command_id, attempt }));
      const listener = listening(c, stopping);
      try {
        const beat = { name, running: runs, draining, waitMs, ...defined({ instance: own }) };
        const { cancel, iterations, lost, leaseMs } = await workers.heartbeat(beat, listener.signal, listener.left);
        const stopped = iterations.map(({ commandId, ...of }) => ({ command_id: commandId, ...of }));
        const more = stopped.length > 0 ? { cancel_iterations: stopped } : {};
        return json({ status: "ok", cancel, ...more, lost, lease_ms: leaseMs });
      } finally {
        listener.done();
      }
    },
    deregister: async ({ body: { name, instance }, json }, c) => {
      await workers.deregister(name, provenInstance(c, secrets, name) ?? instance);
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
    runtime: withoutInstance(worker.about),
    heartbeat_at: worker.heartbeatAt.toISOString(),
    heartbeat_age_ms: worker.heartbeatAgeMs,
    created_at: worker.createdAt.toISOString(),
  };
}

/** Under it a worker could have the commands of one inside a server given back. */
function reservedName(name: string): FlowError {
  const why = `names that begin with '${SERVER_WORKER_PREFIX}' are those of the workers inside servers`;
  return new FlowError("FORBIDDEN", `No worker may register as '${name}': ${why}. Use another one (FLOW_WORKER_NAME)`);
}

/** What makes a process the one that registered is told to that process alone. */
function withoutInstance({ instance: _, gone_at: __, ...about }: JsonObject): JsonObject {
  return about;
}
