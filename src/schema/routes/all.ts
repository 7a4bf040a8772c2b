import { AUDIT_ROUTES, AUTH_ROUTES } from "./auth.ts";
import { CATALOG_ROUTES } from "./catalog.ts";
import type { RouteContract } from "./contract.ts";
import { CREDENTIAL_ROUTES, SEALING_ROUTES, SECRET_ROUTES, SQLDB_ROUTES, TRANSIENT_ROUTES } from "./credentials.ts";
import { DOCTOR_ADMIN_ROUTES } from "./doctor.ts";
import { DRAFT_ROUTES, EXECUTE_ROUTES, EXECUTION_ROUTES, STREAM_ROUTES } from "./executions.ts";
import { KEYCHAIN_ROUTES } from "./keychain.ts";
import { MCP_LIFECYCLE_ROUTES, MCP_ROUTES } from "./mcp.ts";
import { CONNECTION_ROUTES } from "./messages.ts";
import { RESULT_ROUTES } from "./results.ts";
import { ROLE_ROUTES } from "./roles.ts";
import { APPROVAL_LINK_ROUTES, APPROVAL_ROUTES, STEERING_ROUTES } from "./steering.ts";
import { HEALTH_ROUTES, METRICS_ROUTES, OPENAPI_ROUTES, STATS_ROUTES } from "./system.ts";
import { BACKFILL_ROUTES, HOOK_ROUTES, TRIGGER_ROUTES } from "./triggers.ts";
import { LOGIN_SESSION_ROUTES, USER_ROUTES } from "./users.ts";
import { COMMAND_ROUTES, EVENT_ROUTES, POOL_ROUTES, WORKER_ROUTES } from "./workers.ts";

/** The groups of routes of the server's API, listed once: router, permission table, and OpenAPI come from it. */
export const ROUTE_GROUPS = {
  health: HEALTH_ROUTES,
  metrics: METRICS_ROUTES,
  catalog: CATALOG_ROUTES,
  execute: EXECUTE_ROUTES,
  draft: DRAFT_ROUTES,
  execution: EXECUTION_ROUTES,
  steering: STEERING_ROUTES,
  approval: APPROVAL_ROUTES,
  approvalLink: APPROVAL_LINK_ROUTES,
  trigger: TRIGGER_ROUTES,
  backfill: BACKFILL_ROUTES,
  stats: STATS_ROUTES,
  hook: HOOK_ROUTES,
  mcpLifecycle: MCP_LIFECYCLE_ROUTES,
  stream: STREAM_ROUTES,
  worker: WORKER_ROUTES,
  connection: CONNECTION_ROUTES,
  pool: POOL_ROUTES,
  command: COMMAND_ROUTES,
  event: EVENT_ROUTES,
  result: RESULT_ROUTES,
  keychain: KEYCHAIN_ROUTES,
  transient: TRANSIENT_ROUTES,
  credential: CREDENTIAL_ROUTES,
  secret: SECRET_ROUTES,
  sqldb: SQLDB_ROUTES,
  doctorAdmin: DOCTOR_ADMIN_ROUTES,
  sealing: SEALING_ROUTES,
  mcp: MCP_ROUTES,
  auth: AUTH_ROUTES,
  user: USER_ROUTES,
  loginSession: LOGIN_SESSION_ROUTES,
  role: ROLE_ROUTES,
  audit: AUDIT_ROUTES,
  openapi: OPENAPI_ROUTES,
} as const;

/** Every route of the server's API. */
export const ROUTES: readonly RouteContract[] = Object.values(ROUTE_GROUPS).flatMap((group): readonly RouteContract[] =>
  Object.values(group),
);
