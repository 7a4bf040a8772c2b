import { randomBytes } from "node:crypto";
import type { Hono } from "hono";
import { loadConfig } from "../../src/platform/config/config.ts";
import { createKeyRing } from "../../src/platform/crypto/key-ring.ts";
import { createIds } from "../../src/platform/system/ids.ts";
import { createLogger } from "../../src/platform/telemetry/logger.ts";
import { createMetrics } from "../../src/platform/telemetry/metrics.ts";
import type { Database } from "../../src/repositories/database/database.ts";
import { unavailable } from "../../src/repositories/database/error-codes.ts";
import { mcpOf, wireServices } from "../../src/roles/server/wire-services.ts";
import { createApp } from "../../src/routes/app.ts";
import { createCatalog } from "../../src/services/catalog/catalog.ts";
import { createDocuments } from "../../src/services/catalog/documents.ts";
import { createDiagnosis } from "../../src/services/diagnosis/diagnose.ts";

/** A server's API in this process, without a port. */
export type Api = ReturnType<typeof buildApi>;

/** Builds one over a database; its background work does not run. */
export function buildApi(database: Database, resultsFolder: string) {
  const config = loadConfig({});
  const nothing = () => undefined;
  const observer = {
    ...{
      committed: nothing,
      batchAccepted: nothing,
      ackTimedOut: nothing,
      firstClaim: nothing,
      claimed: nothing,
      returned: nothing,
    },
    fault: (error: unknown) => {
      throw error;
    },
  };
  const keys = createKeyRing([{ id: "bench", key: randomBytes(32) }]);
  const documents = createDocuments();
  const service = wireServices({
    ...{ database, documents, keys, config, resultsFolder, observer },
    ...{ processor: "bench", env: {} },
  });
  const catalog = createCatalog({ database, documents, onRegistered: nothing });
  const app = createApp({
    ...service,
    reaper: { sweepNow: () => Promise.reject(new Error("Nothing is swept here")) },
    diagnose: createDiagnosis({ database, keyIds: undefined }),
    overview: () => Promise.reject(new Error("nobody looks on")),
    catalog,
    ...mcpOf({ catalog, executions: service.executions, drafts: service.drafts }),
    limits: config,
    health: () => ({ status: "ok" }),
    stopping: new AbortController().signal,
    logger: createLogger("silent", process.stderr),
    metrics: createMetrics(),
    tokens: { server: undefined, worker: undefined },
    loopback: true,
    version: "bench",
    newRequestId: createIds(Date.now),
    unavailable,
  });
  return { app: app as unknown as Hono, service };
}

/** Sends a request and gives its answer. Throws for a refusal. */
export async function call(app: Hono, path: string, body?: unknown): Promise<Record<string, unknown>> {
  const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const response = await app.request(path, init);
  const answer = (await response.json()) as Record<string, unknown>;
  if (!response.ok) throw new Error(`${path}: ${response.status} ${JSON.stringify(answer)}`);
  return answer;
}
