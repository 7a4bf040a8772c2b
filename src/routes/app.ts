import { Hono } from "hono";
import type { PublicAddress } from "../platform/config/public-address.ts";
import type { ClaimSecrets } from "../platform/crypto/claim-secrets.ts";
import type { GuiFiles } from "../platform/http/page-files.ts";
import type { Logger } from "../platform/telemetry/logger.ts";
import type { Metrics } from "../platform/telemetry/metrics.ts";
import { LINK_BODY_BYTES_MAX } from "../schema/api/waits/approvals.ts";
import { type ROUTE_GROUPS, ROUTES } from "../schema/routes/all.ts";
import { HOOK_BYTES_MAX } from "../schema/triggers/deliveries.ts";
import type { FlowError } from "../schema/words/errors.ts";
import type { HealthAnswer } from "../schema/words/wire.ts";
import type { Access } from "../services/access/access.ts";
import type { Audit } from "../services/access/audit.ts";
import type { LoginSessions } from "../services/access/login-sessions.ts";
import type { Roles } from "../services/access/roles.ts";
import type { SessionChanges } from "../services/access/session-changes.ts";
import type { Users } from "../services/access/users.ts";
import type { Approvals } from "../services/approvals/approvals.ts";
import type { BulkOperations } from "../services/bulk/bulk.ts";
import type { Catalog } from "../services/catalog/catalog.ts";
import type { Credentials } from "../services/credentials/credentials.ts";
import type { TransientValues } from "../services/credentials/key-values.ts";
import type { rotateSecrets } from "../services/credentials/rotate-secrets.ts";
import type { runSql } from "../services/credentials/run-sql.ts";
import type { Sealing } from "../services/credentials/sealing.ts";
import type { Drafts } from "../services/drafts/drafts.ts";
import type { checkReading } from "../services/executions/check-read-access.ts";
import type { Executions } from "../services/executions/executions.ts";
import type { Keychain } from "../services/keychain/keychain.ts";
import type { inspectMcpResource } from "../services/mcp/inspect.ts";
import type { runLifecycleAction } from "../services/mcp/lifecycle.ts";
import type { AgentCalls } from "../services/mcp/tool-calls.ts";
import type { AgentTools } from "../services/mcp/tool-list.ts";
import type { AgentChanges } from "../services/mcp/tool-list-changes.ts";
import type { Batches } from "../services/orchestration/batch-status.ts";
import type { Orchestrator } from "../services/orchestration/orchestrator.ts";
import type { Results } from "../services/results/results.ts";
import type { KeyedSignals } from "../services/signals/keyed-signals.ts";
import type { Statistics } from "../services/statistics/statistics.ts";
import type { Triggers } from "../services/triggers/triggers.ts";
import type { DeliveryLog } from "../services/webhooks/delivery-log.ts";
import type { Webhooks } from "../services/webhooks/webhooks.ts";
import type { Pools } from "../services/workers/pools.ts";
import type { PresentClaims } from "../services/workers/present-claims.ts";
import type { Workers } from "../services/workers/workers.ts";
import { auditRoutes } from "./access/audit.ts";
import { loginSessionRoutes } from "./access/login-sessions.ts";
import { authRoutes } from "./access/me.ts";
import { roleRoutes } from "./access/roles.ts";
import { userRoutes } from "./access/users.ts";
import { approvalRoutes } from "./approvals/approvals.ts";
import { approvalLinkRoutes } from "./approvals/links.ts";
import { catalogRoutes } from "./catalog/catalog.ts";
import { credentialRoutes } from "./credentials/credentials.ts";
import { secretRoutes } from "./credentials/key-rotation.ts";
import { transientRoutes } from "./credentials/key-values.ts";
import { sealingRoutes } from "./credentials/sealing.ts";
import { sqldbRoutes } from "./credentials/sqldb.ts";
import { type DoctorAdminDeps, doctorAdminRoutes } from "./doctor/admin.ts";
import { draftRoutes } from "./executions/drafts.ts";
import { executeRoutes } from "./executions/execute.ts";
import { executionRoutes } from "./executions/executions.ts";
import { steeringRoutes } from "./executions/steering.ts";
import { streamRoutes } from "./executions/stream.ts";
import { refuseMethod } from "./http/allowed-methods.ts";
import { access, type Tokens } from "./http/authenticate.ts";
import { errorAnswers, noSuchRoute } from "./http/errors.ts";
import { loopbackOnly } from "./http/loopback-only.ts";
import { BODY_BYTES_MAX } from "./http/read-body.ts";
import { bodyLimit, type RouteEnvironment, requests } from "./http/request-context.ts";
import { createWrongTokens, type WrongTokens } from "./http/wrong-tokens.ts";
import { keychainRoutes } from "./keychain/keychain.ts";
import { mcpLifecycleRoutes } from "./mcp/lifecycle.ts";
import { mcpRoutes } from "./mcp/mcp.ts";
import { resultRoutes } from "./results/results.ts";
import { statisticsRoutes } from "./statistics/statistics.ts";
import { createStreamPlaces } from "./streams/places.ts";
import { guiFiles } from "./system/gui.ts";
import { healthRoutes } from "./system/health.ts";
import { metricsRoutes } from "./system/metrics.ts";
import { openApiRoutes } from "./system/openapi.ts";
import { backfillRoutes } from "./triggers/backfill.ts";
import { triggerRoutes } from "./triggers/triggers.ts";
import { hookRoutes } from "./webhooks/deliveries.ts";
import { commandRoutes } from "./workers/commands.ts";
import { connectionRoutes } from "./workers/connection.ts";
import { eventRoutes } from "./workers/events.ts";
import { poolRoutes } from "./workers/pools.ts";
import { workerRoutes } from "./workers/workers.ts";

/** How much callers may send. */
export interface AppLimits {
  /** `FLOW_BATCH_EVENTS_MAX`. */
  batchEventsMax: number;
  /** `FLOW_BATCH_BYTES_MAX`. */
  batchBytesMax: number;
  /** `FLOW_RESULT_BYTES_MAX`. */
  resultBytesMax: number;
  /** `FLOW_EVENT_STREAMS_PER_USER`. */
  eventStreamsPerUser: number;
  /** `FLOW_EVENT_STREAMS`. */
  eventStreams: number;
}

/** What the API is made of. */
export interface AppDeps {
  catalog: Catalog;
  executions: Executions;
  drafts: Drafts;
  bulk: BulkOperations;
  signals: Pick<KeyedSignals, "send">;
  triggers: Triggers;
  deliveries: DeliveryLog;
  statistics: Statistics;
  approvals: Approvals;
  orchestrator: Pick<Orchestrator, "claim" | "report">;
  workers: Workers;
  claimSecrets: ClaimSecrets;
  presentClaims: PresentClaims;
  webhooks: Webhooks;
  pools: Pools;
  batches: Batches;
  agentTools: AgentTools;
  agentCalls: AgentCalls;
  agentChanges: AgentChanges;
  runLifecycle: ReturnType<typeof runLifecycleAction>;
  inspectMcp: ReturnType<typeof inspectMcpResource>;
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
  /** The server's health, without authentication. */
  health(): HealthAnswer;
  runSql: ReturnType<typeof runSql>;
  audit: Audit;
  access: Access;
  sessionChanges: SessionChanges;
  users: Users;
  loginSessions: LoginSessions;
  roles: Roles;
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
  /** The browser's page; undefined if it is not installed. */
  gui?: GuiFiles | undefined;
  /** Version of the program, for the API's description. */
  version: string;
  newRequestId(): string;
  /** The answer to an error that means "the database is unavailable"; undefined for other errors. */
  unavailable(error: unknown): FlowError | undefined;
}

/**
 * The server's API. Middleware before a route, in this order: request id, log and metrics; origin; body length; authentication.
 */
export function createApp(deps: AppDeps) {
  const app = new Hono<RouteEnvironment>();
  app.onError(errorAnswers(deps));
  app.notFound((c) => {
    refuseMethod(c, app.router);
    return noSuchRoute(c);
  });
  app.use(requests(deps));
  if (deps.loopback) app.use(loopbackOnly(deps.publicAddress));
  if (deps.gui !== undefined) app.use(guiFiles(deps.gui));
  app.use(bodyLimit(bodyLimits(deps.limits)));
  const wrongTokens = createWrongTokens(deps.stopping);
  app.use(access(ROUTES, { ...deps, wrongTokens }));
  for (const group of Object.values(groupsOf(deps, wrongTokens))) app.route("/", group);
  return app;
}

/** What answers each group of routes. */
function groupsOf(
  deps: AppDeps,
  wrongTokens: WrongTokens,
): Readonly<Record<keyof typeof ROUTE_GROUPS, Hono<RouteEnvironment>>> {
  const { eventStreamsPerUser: perUser, eventStreams: inAll } = deps.limits;
  const streams = { stopping: deps.stopping, places: createStreamPlaces({ perUser, inAll }) };
  const batchLimits = { eventsMax: deps.limits.batchEventsMax, bytesMax: deps.limits.batchBytesMax };
  return {
    health: healthRoutes(deps.health),
    metrics: metricsRoutes(deps.metrics),
    catalog: catalogRoutes(deps.catalog, deps.audit),
    execute: executeRoutes(deps.executions, deps.stopping),
    draft: draftRoutes(deps.drafts),
    execution: executionRoutes(deps.executions, deps.stopping, deps.audit),
    approval: approvalRoutes(deps.approvals, deps.audit),
    approvalLink: approvalLinkRoutes({ ...deps, wrongTokens }),
    steering: steeringRoutes(deps.executions, deps.signals, deps.bulk, deps.audit),
    trigger: triggerRoutes(deps.triggers, deps.deliveries, deps.audit),
    stats: statisticsRoutes(deps.statistics),
    backfill: backfillRoutes(deps.bulk, deps.triggers),
    hook: hookRoutes(deps.webhooks, deps.stopping),
    mcpLifecycle: mcpLifecycleRoutes(deps.runLifecycle, deps.inspectMcp),
    stream: streamRoutes(deps.executions, streams),
    worker: workerRoutes(deps.workers, deps.claimSecrets, deps.stopping),
    connection: connectionRoutes(),
    pool: poolRoutes(deps.pools),
    command: commandRoutes(deps.orchestrator, deps.workers, deps.claimSecrets, deps.pools, deps.metrics, deps.stopping),
    event: eventRoutes({ ...deps, streams, limits: batchLimits }),
    result: resultRoutes(
      deps.results,
      deps.sealing,
      deps.limits.resultBytesMax,
      deps.checkReading,
      deps.executions.reusedSteps,
    ),
    keychain: keychainRoutes(deps.keychain, deps.stopping),
    transient: transientRoutes(deps.transient),
    credential: credentialRoutes(deps.credentials),
    secret: secretRoutes(deps.rotate),
    sqldb: sqldbRoutes(deps.runSql, deps.stopping),
    doctorAdmin: doctorAdminRoutes(deps),
    sealing: sealingRoutes(deps.sealing),
    mcp: mcpRoutes({ ...deps, streams, tools: deps.agentTools, calls: deps.agentCalls }),
    auth: authRoutes(deps.access, deps.sessionChanges, deps.stopping),
    user: userRoutes(deps.users),
    loginSession: loginSessionRoutes(deps.loginSessions, deps.users, deps.audit),
    role: roleRoutes(deps.roles),
    audit: auditRoutes(deps.audit),
    openapi: openApiRoutes(ROUTES, deps.version),
  };
}

/** The longest body of a route, by its contract. */
function bodyLimits(limits: AppLimits): (route: string | undefined) => number {
  const special = {
    ...{ batch: limits.batchBytesMax, result: limits.resultBytesMax },
    ...{ hook: HOOK_BYTES_MAX, link: LINK_BODY_BYTES_MAX },
  };
  const known = new Map(
    ROUTES.map(({ method, path, bodyLimit }) => [
      `${method.toUpperCase()} ${path}`,
      bodyLimit === undefined ? BODY_BYTES_MAX : special[bodyLimit],
    ]),
  );
  return (route) => known.get(route ?? "") ?? BODY_BYTES_MAX;
}
