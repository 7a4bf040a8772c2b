import { type Context, Hono } from "hono";
import { formatTraceparent, parseTraceparent } from "../../platform/telemetry/trace-context.ts";
import { LifecycleAnswer, LifecycleBody } from "../../schema/api/catalog.ts";
import { type LifecycleAsked, type LifecycleDeps, runLifecycleAction } from "../../services/mcp/lifecycle.ts";
import { contract } from "../http/contract.ts";
import { bodySha256, idempotencyKey } from "../http/idempotency.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { jsonBody } from "../http/validate.ts";

const LIFECYCLE = contract({
  method: "post",
  path: "/api/mcp/mcp/:resource_path{.+}/lifecycle/:action",
  summary: "Starts the playbook that an MCP resource names for an action, such as deploy",
  access: "operator",
  user: { action: "execute", of: "asked" },
  body: LifecycleBody,
  bodyOptional: true,
  answer: LifecycleAnswer,
  refusals: [404, 422],
});

/** Contracts of {@link mcpLifecycleRoutes}. */
export const MCP_LIFECYCLE_CONTRACTS = [LIFECYCLE];

/** The life of MCP servers that playbooks look after (interface specification, Results and lifecycle). */
export function mcpLifecycleRoutes(deps: LifecycleDeps) {
  const run = runLifecycleAction(deps);
  return new Hono<RouteEnvironment>().post(
    LIFECYCLE.path,
    jsonBody(LIFECYCLE.body, LIFECYCLE.bodyOptional),
    async (c) => {
      const { resource_path, action } = c.req.param();
      const { user } = c.var;
      const trace = parseTraceparent(c.req.header("traceparent"));
      const started = await run({
        resource: resource_path,
        action,
        permit: (path) => c.var.permit("execute", path),
        ...(user !== undefined && { startedBy: user.userId }),
        ...(trace !== undefined && { traceparent: formatTraceparent(trace) }),
        ...idempotencyOf(c),
      });
      return c.json({
        execution_id: started.executionId,
        status: started.status,
        path: started.path,
        version: started.version,
        catalog_id: started.catalogId,
        ...(started.duplicate && { duplicate: true as const }),
        resource: started.resource,
        action,
      } satisfies LifecycleAnswer);
    },
  );
}

/** The same key for another action is another request: the address stands for the body, which is empty. */
function idempotencyOf(c: Context<RouteEnvironment>): Pick<LifecycleAsked, "idempotency"> {
  const key = idempotencyKey(c);
  if (key === null) return {};
  const { user } = c.var;
  const caller = user === undefined ? c.var.role : `user:${user.userId}`;
  return { idempotency: { caller, key, bodySha256: bodySha256(Buffer.from(c.req.path)) } };
}
