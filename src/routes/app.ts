import { Hono } from "hono";
import type { GuiFiles } from "../platform/gui-files.ts";
import type { Logger } from "../platform/logger.ts";
import type { Metrics } from "../platform/metrics.ts";
import type { PublicAddress } from "../platform/public-address.ts";
import type { FlowError } from "../schema/errors.ts";
import type { HealthAnswer } from "../schema/wire.ts";
import type { Access } from "../services/access.ts";
import type { Advance } from "../services/advance.ts";
import type { AgentChanges } from "../services/agent-changes.ts";
import type { Audit } from "../services/audit.ts";
import type { Batches } from "../services/batch-status.ts";
import type { Catalog } from "../services/catalog.ts";
import type { Credentials } from "../services/credentials.ts";
import type { Executions } from "../services/executions.ts";
import type { Keychain } from "../services/keychain.ts";
import type { LoginSessions } from "../services/login-sessions.ts";
import type { checkReading } from "../services/reading-execution.ts";
import type { Results } from "../services/results.ts";
import type { Roles } from "../services/roles.ts";
import type { rotateSecrets } from "../services/rotate-secrets.ts";
import type { runSql } from "../services/run-sql.ts";
import type { Sealing } from "../services/sealing.ts";
import type { SessionChanges } from "../services/session-changes.ts";
import type { TransientValues } from "../services/transient.ts";
import type { Users } from "../services/users.ts";
import type { Workers } from "../services/workers.ts";
import { access, type Tokens } from "./access.ts";
import { refuseMethod } from "./allowed-methods.ts";
import { AUDIT_CONTRACTS, auditRoutes } from "./audit.ts";
import { AUTH_CONTRACTS, authRoutes } from "./auth.ts";
import { BODY_BYTES_MAX } from "./body.ts";
import { CATALOG_CONTRACTS, catalogRoutes } from "./catalog.ts";
import { COMMAND_CONTRACTS, commandRoutes } from "./commands.ts";
import type { RouteContract } from "./contract.ts";
import { CREDENTIAL_CONTRACTS, credentialRoutes } from "./credentials.ts";
import { DOCTOR_ADMIN_CONTRACTS, type DoctorAdminDeps, doctorAdminRoutes } from "./doctor-admin.ts";
import type { RouteEnvironment } from "./environment.ts";
import { errorAnswers, noSuchRoute } from "./errors.ts";
import { EVENT_CONTRACTS, type EventRouteDeps, eventRoutes } from "./events.ts";
import { EXECUTE_CONTRACTS, executeRoutes } from "./execute.ts";
import { EXECUTION_CONTRACTS, executionRoutes } from "./executions.ts";
import { guiFiles } from "./gui.ts";
import { HEALTH_CONTRACTS, healthRoutes } from "./health.ts";
import { loopbackOnly } from "./host.ts";
import { KEYCHAIN_CONTRACTS, keychainRoutes } from "./keychain.ts";
import { LOGIN_SESSION_CONTRACTS, loginSessionRoutes } from "./login-sessions.ts";
import { MCP_CONTRACTS, mcpRoutes } from "./mcp.ts";
import { MCP_LIFECYCLE_CONTRACTS, mcpLifecycleRoutes } from "./mcp-lifecycle.ts";
import { METRICS_CONTRACTS, metricsRoutes } from "./metrics.ts";
import { OPENAPI_CONTRACTS, openApiRoutes } from "./openapi.ts";
import { bodyLimit, requests } from "./request.ts";
import { RESULT_CONTRACTS, resultRoutes } from "./results.ts";
import { ROLE_CONTRACTS, roleRoutes } from "./roles.ts";
import { SEALING_CONTRACTS, sealingRoutes } from "./sealing.ts";
import { SECRET_CONTRACTS, secretRoutes } from "./secrets.ts";
import { SQLDB_CONTRACTS, sqldbRoutes } from "./sqldb.ts";
import { STREAM_CONTRACTS, streamRoutes } from "./stream.ts";
import { TRANSIENT_CONTRACTS, transientRoutes } from "./transient.ts";
import { USER_CONTRACTS, userRoutes } from "./users.ts";
import { WORKER_CONTRACTS, workerRoutes } from "./workers.ts";

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
  advance: Pick<Advance, "claim">;
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
  /** Aborted when the server begins to stop: whoever waits for something is answered. */
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
    .route("/", commandRoutes(deps.advance, deps.workers, deps.metrics, deps.stopping))
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
