import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { after } from "node:test";
import { createInProcessBroker } from "../../../src/adapters/in-process-broker.ts";
import { loadConfig } from "../../../src/platform/config/config.ts";
import { createSecret } from "../../../src/platform/crypto/secret.ts";
import { createIds } from "../../../src/platform/system/ids.ts";
import { createLogger } from "../../../src/platform/telemetry/logger.ts";
import { createMetrics } from "../../../src/platform/telemetry/metrics.ts";
import type { Broker } from "../../../src/ports/broker.ts";
import { type Database, openDatabase } from "../../../src/repositories/database/database.ts";
import { unavailable } from "../../../src/repositories/database/error-codes.ts";
import { mcpOf, type Services, type ServicesDeps, wireServices } from "../../../src/roles/server/wire-services.ts";
import { createApp } from "../../../src/routes/app.ts";
import { createCatalog } from "../../../src/services/catalog/catalog.ts";
import { createDiagnosis } from "../../../src/services/diagnosis/diagnose.ts";
import type { OrchestratorObserver } from "../../../src/services/orchestration/orchestrator.ts";
import { createOverview } from "../../../src/services/overview/overview.ts";
import { createReaper } from "../../../src/services/workers/reaper.ts";
import { createServiceDatabase } from "../database/postgres.ts";
import { documents } from "../engine/documents.ts";
import { keyRing } from "../engine/key-ring.ts";

/** Tokens of {@link Api.guarded}. */
export const TOKENS = { operator: "operator-token-1", worker: "worker-token-2" };

/** The server's API on a database of its own, without a port. */
export interface Api {
  /** As the embedded default has it: on loopback, open. */
  open: ReturnType<typeof createApp>;
  /** With tokens, beyond loopback. */
  guarded: ReturnType<typeof createApp>;
  database: Database;
  service: Services;
  /** Folder of the results that are files. */
  resultsFolder: string;
  /** Aborting it is what a server that stops does. */
  stopping: AbortController;
  /** Every log line so far. */
  log(): string;
}

/** An API on a database of its own. Await it at the top of a test file: it is gone when the file's tests are over. */
export async function openApi(
  settings: Readonly<Record<string, string>> = {},
  parts: Pick<ServicesDeps, "stores" | "resultsObserver" | "publicUrl"> = {},
): Promise<Api> {
  const { url } = await createServiceDatabase();
  const database = openDatabase(url);
  const api = await buildApi(database, settings, parts);
  after(async () => {
    api.stopping.abort();
    await api.service.orchestrator.close();
    await api.service.results.close();
    await database.close();
  });
  return api;
}

/** The API over a database, whatever its state. `settings` are environment variables. */
export async function buildApi(
  database: Database,
  settings: Readonly<Record<string, string>> = {},
  parts: Pick<ServicesDeps, "stores" | "resultsObserver" | "publicUrl"> = {},
): Promise<Api> {
  let written = "";
  const stream = new Writable({
    write(chunk, _encoding, done) {
      written += String(chunk);
      done();
    },
  });
  const metrics = createMetrics();
  const onRegistered = ({ kind, unchanged }: { kind: string; unchanged: boolean }) =>
    metrics.catalogRegistered(kind, unchanged ? "unchanged" : "created");
  const logger = createLogger("debug", stream);
  // Most tests claim the commands of plain steps themselves, as a worker does.
  const config = loadConfig({ FLOW_PURE_STEPS: "workers", ...settings });
  const resultsFolder = await mkdtemp(join(tmpdir(), "flow-results-"));
  after(() => rm(resultsFolder, { recursive: true, force: true }));
  const observer: OrchestratorObserver = {
    committed: () => undefined,
    batchAccepted: () => undefined,
    ackTimedOut: () => undefined,
    firstClaim: () => undefined,
    claimed: () => undefined,
    returned: () => undefined,
    fault: (error) => logger.error({ err: error }, "advancing failed"),
  };
  const service = wireServices({
    database,
    documents,
    keys: keyRing(),
    config,
    resultsFolder,
    processor: "test",
    env: {},
    observer,
    ...parts,
  });
  const catalog = createCatalog({ database, documents, onRegistered });
  const stopping = new AbortController();
  const broker = createInProcessBroker(logger);
  after(() => broker.close());
  const shared = {
    ...service,
    ...doctorParts(database, broker),
    catalog,
    ...mcpOf({ catalog, executions: service.executions, drafts: service.drafts }),
    logger,
    metrics,
    limits: config,
    health: () => ({ status: "ok" as const }),
    stopping: stopping.signal,
    version: "0.0.0-test",
    newRequestId: createIds(Date.now),
    unavailable,
  };
  const tokens = { server: createSecret(TOKENS.operator), worker: createSecret(TOKENS.worker) };
  return {
    open: createApp({ ...shared, tokens: { server: undefined, worker: undefined }, loopback: true }),
    guarded: createApp({ ...shared, tokens, loopback: false }),
    database,
    service,
    resultsFolder,
    stopping,
    log: () => written,
  };
}

/** What the doctor's routes ask. Every command that waits counts as stranded. */
function doctorParts(database: Database, broker: Broker) {
  const policy = { staleMs: 60_000, hardTimeoutMs: 1_800_000, pendingMs: 0 };
  const onSwept = () => undefined;
  const reaper = createReaper({
    database,
    broker,
    holder: "test",
    policy,
    maxPerRun: 100,
    intervalMs: 60_000,
    onSwept,
    now: Date.now,
  });
  const overview = createOverview({
    database,
    embedded: false,
    reaper: { ...reaper, enabled: true, intervalMs: 60_000 },
    server: "test",
    staleMs: policy.staleMs,
    now: Date.now,
  });
  return { reaper, diagnose: createDiagnosis({ database, keyIds: keyRing().ids }), overview };
}

/** What an answer's body may be read as in a test. */
export type Body = Record<string, unknown>;

/** A JSON request. */
export function posted(body: unknown, headers: Record<string, string> = {}): RequestInit {
  return { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json", ...headers } };
}

/** A small valid playbook. `tag` makes its text differ. */
export function playbook(path: string, tag = "a", metadata = ""): string {
  return `apiVersion: flow/v2
kind: Playbook
metadata: { name: "${path.split("/").at(-1)}", path: "${path}"${metadata} }
workload: { tag: ${tag} }
workflow:
  - step: start
    tool: { kind: noop }
`;
}
