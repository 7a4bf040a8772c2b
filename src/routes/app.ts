import { Hono } from "hono";
import type { PublicAddress } from "../platform/config/public-address.ts";
import type { GuiFiles } from "../platform/http/page-files.ts";
import type { Logger } from "../platform/telemetry/logger.ts";
import type { Metrics } from "../platform/telemetry/metrics.ts";
import type { FlowError } from "../schema/words/errors.ts";
import type { HealthAnswer } from "../schema/words/wire.ts";
import type { Access } from "../services/access/access.ts";
import type { Audit } from "../services/access/audit.ts";
import type { LoginSessions } from "../services/access/login-sessions.ts";
import type { Roles } from "../services/access/roles.ts";
import type { SessionChanges } from "../services/access/session-changes.ts";
import type { Users } from "../services/access/users.ts";
import type { Catalog } from "../services/catalog/catalog.ts";
import type { Credentials } from "../services/credentials/credentials.ts";
import type { TransientValues } from "../services/credentials/key-values.ts";
import type { rotateSecrets } from "../services/credentials/rotate-secrets.ts";
import type { runSql } from "../services/credentials/run-sql.ts";
import type { Sealing } from "../services/credentials/sealing.ts";
import type { checkReading } from "../services/executions/check-read-access.ts";
import type { Executions } from "../services/executions/executions.ts";
import type { Keychain } from "../services/keychain/keychain.ts";
import type { AgentChanges } from "../services/mcp/tool-list-changes.ts";
import type { Batches } from "../services/orchestration/batch-status.ts";
import type { Orchestrator } from "../services/orchestration/orchestrator.ts";
import type { Results } from "../services/results/results.ts";
import type { Workers } from "../services/workers/workers.ts";
import { AUDIT_CONTRACTS, auditRoutes } from "./access/audit.ts";
import { LOGIN_SESSION_CONTRACTS, loginSessionRoutes } from "./access/login-sessions.ts";
import { AUTH_CONTRACTS, authRoutes } from "./access/me.ts";
import { ROLE_CONTRACTS, roleRoutes } from "./access/roles.ts";
import { USER_CONTRACTS, userRoutes } from "./access/users.ts";
import { CATALOG_CONTRACTS, catalogRoutes } from "./catalog/catalog.ts";
import { CREDENTIAL_CONTRACTS, credentialRoutes } from "./credentials/credentials.ts";
import { SECRET_CONTRACTS, secretRoutes } from "./credentials/key-rotation.ts";
import { TRANSIENT_CONTRACTS, transientRoutes } from "./credentials/key-values.ts";
import { SEALING_CONTRACTS, sealingRoutes } from "./credentials/sealing.ts";
import { SQLDB_CONTRACTS, sqldbRoutes } from "./credentials/sqldb.ts";
import { DOCTOR_ADMIN_CONTRACTS, type DoctorAdminDeps, doctorAdminRoutes } from "./doctor/admin.ts";
import { EXECUTE_CONTRACTS, executeRoutes } from "./executions/execute.ts";
import { EXECUTION_CONTRACTS, executionRoutes } from "./executions/executions.ts";
import { STREAM_CONTRACTS, streamRoutes } from "./executions/stream.ts";
import { refuseMethod } from "./http/allowed-methods.ts";
import { access, type Tokens } from "./http/authenticate.ts";
import type { RouteContract } from "./http/contract.ts";
import { errorAnswers, noSuchRoute } from "./http/errors.ts";
import { loopbackOnly } from "./http/loopback-only.ts";
import { BODY_BYTES_MAX } from "./http/read-body.ts";
import { bodyLimit, requests } from "./http/request.ts";
import type { RouteEnvironment } from "./http/request-context.ts";
import { KEYCHAIN_CONTRACTS, keychainRoutes } from "./keychain/keychain.ts";
import { MCP_LIFECYCLE_CONTRACTS, mcpLifecycleRoutes } from "./mcp/lifecycle.ts";
import { MCP_CONTRACTS, mcpRoutes } from "./mcp/mcp.ts";
import { RESULT_CONTRACTS, resultRoutes } from "./results/results.ts";
import { guiFiles } from "./system/gui.ts";
import { HEALTH_CONTRACTS, healthRoutes } from "./system/health.ts";
import { METRICS_CONTRACTS, metricsRoutes } from "./system/metrics.ts";
import { OPENAPI_CONTRACTS, openApiRoutes } from "./system/openapi.ts";
import { COMMAND_CONTRACTS, commandRoutes } from "./workers/commands.ts";
import { EVENT_CONTRACTS, type EventRouteDeps, eventRoutes } from "./workers/events.ts";
import { WORKER_CONTRACTS, workerRoutes } from "./workers/workers.ts";

/** Every route of the server's API. */
export const CONTRACTS: readonly RouteContract[] = [
  ...HEALTH_CONTRACTS,
  ...METRICS_CONTRACTS,
  ...CATALOG_CONTRACTS,
  ...EXECUTE_CONTRACTS,
  ...EXECUTION_CONTRACTS,
  ...MCP_LIFECYCLE_CONTRACTS,
  ...STREAM_CONTRACTS,
  ...WORKER_CONTRACTS,
  ...COMMAND_CONTRACTS,
  ...EVENT_CONTRACTS,
  ...RESULT_CONTRACTS,
  ...KEYCHAIN_CONTRACTS,
  ...TRANSIENT_CONTRACTS,
  ...CREDENTIAL_CONTRACTS,
  ...SECRET_CONTRACTS,
  ...SQLDB_CONTRACTS,
  ...DOCTOR_ADMIN_CONTRACTS,
  ...SEALING_CONTRACTS,
  ...MCP_CONTRACTS,
  ...AUTH_CONTRACTS,
  ...USER_CONTRACTS,
  ...LOGIN_SESSION_CONTRACTS,
  ...ROLE_CONTRACTS,
  ...AUDIT_CONTRACTS,
  ...OPENAPI_CONTRACTS,
];

/** How much callers may send. */
export interface AppLimits {
  /** `FLOW_BATCH_EVENTS_MAX`. */
  batchEventsMax: number;
  /** `FLOW_BATCH_BYTES_MAX`. */
  batchBytesMax: number;
  /** `FLOW_RESULT_BYTES_MAX`. */
  resultBytesMax: number;
}

/** What the API is made of. */
export interface AppDeps {
  catalog: Catalog;
  executions: Executions;
  orchestrator: Pick<Orchestrator, "claim">;
  workers: Workers;
  batches: Batches;
  agentChanges: AgentChanges;
  results: Results;
  checkReading: ReturnType<typeof checkReading>;
  sealing: Sealing;
  keychain: Keychain;
  transient: TransientValues;
  credentials: Credentials;
  rotate: ReturnType<typeof rotateSecrets>;
  reaper: DoctorAdminDeps["reaper"];
  diagnose: DoctorAdminDeps["diagnose"];
  overview: DoctorAdminDeps["overview"];
  /** How the server is, for anybody. */
  health(): HealthAnswer;
  runSql: ReturnType<typeof runSql>;
  audit: Audit;
  access: Access;
  sessionChanges: SessionChanges;
  users: Users;
  loginSessions: LoginSessions;
  roles: Roles;
  /** Takes what workers report. */
  report: EventRouteDeps["report"];
  limits: AppLimits;
  logger: Logger;
  metrics: Metrics;
  tokens: Tokens;
  /** The server listens on loopback: refuse names and pages from elsewhere. */
  loopback: boolean;
  /** The address behind a reverse proxy, by which it may be reached then too. */
  publicAddress?: PublicAddress | undefined;
  /** Aborted when the server begins to stop: ends all waiting requests with an answer. */
  stopping: AbortSignal;
  /** The browser's page; undefined where the installation has none. */
  gui?: GuiFiles | undefined;
  /** Version of the program, for the API's description. */
  version: string;
  newRequestId(): string;
  /** The refusal for an error that says "the database is away"; undefined for one that is a fault. */
  unavailable(error: unknown): FlowError | undefined;
}

/**
 * The server's API. What stands between a request and its route, in this order: its id, log and metrics; where it comes
 * from; how long it is; who sends it.
 */
export function createApp(deps: AppDeps) {
  const app = new Hono<RouteEnvironment>();
  const batchLimits = { eventsMax: deps.limits.batchEventsMax, bytesMax: deps.limits.batchBytesMax };
  app.onError(errorAnswers(deps));
  app.notFound((c) => {
    refuseMethod(c, app.router);
    return noSuchRoute(c);
  });
  app.use(requests(deps));
  if (deps.loopback) app.use(loopbackOnly(deps.publicAddress));
  if (deps.gui !== undefined) app.use(guiFiles(deps.gui));
  app.use(bodyLimit(bodyLimits(deps.limits)));
  app.use(access(CONTRACTS, deps));
  return app
    .route("/", healthRoutes(deps.health))
    .route("/", metricsRoutes(deps.metrics))
    .route("/", catalogRoutes(deps.catalog))
    .route("/", executeRoutes(deps.executions, deps.stopping))
    .route("/", executionRoutes(deps.executions, deps.stopping))
    .route("/", mcpLifecycleRoutes(deps))
    .route("/", streamRoutes(deps.executions, deps.stopping))
    .route("/", workerRoutes(deps.workers, deps.stopping))
    .route("/", commandRoutes(deps.orchestrator, deps.workers, deps.metrics, deps.stopping))
    .route("/", eventRoutes({ ...deps, limits: batchLimits }))
    .route("/", resultRoutes(deps.results, deps.sealing, deps.limits.resultBytesMax, deps.checkReading))
    .route("/", sealingRoutes(deps.sealing))
    .route("/", credentialRoutes(deps.credentials))
    .route("/", secretRoutes(deps.rotate))
    .route("/", doctorAdminRoutes(deps))
    .route("/", sqldbRoutes(deps.runSql, deps.stopping))
    .route("/", keychainRoutes(deps.keychain, deps.stopping))
    .route("/", transientRoutes(deps.transient))
    .route("/", mcpRoutes(deps))
    .route("/", authRoutes(deps.access, deps.sessionChanges, deps.stopping))
    .route("/", userRoutes(deps.users))
    .route("/", loginSessionRoutes(deps.loginSessions, deps.users))
    .route("/", roleRoutes(deps.roles))
    .route("/", auditRoutes(deps.audit))
    .route("/", openApiRoutes(CONTRACTS, deps.version));
}

/** The longest body of a route, by its contract. */
function bodyLimits(limits: AppLimits): (route: string | undefined) => number {
  const special = { batch: limits.batchBytesMax, result: limits.resultBytesMax };
  const contracts: readonly RouteContract[] = CONTRACTS;
  const known = new Map(
    contracts.map(({ method, path, bodyLimit }) => [
      `${method.toUpperCase()} ${path}`,
      bodyLimit === undefined ? BODY_BYTES_MAX : special[bodyLimit],
    ]),
  );
  return (route) => known.get(route ?? "") ?? BODY_BYTES_MAX;
}
