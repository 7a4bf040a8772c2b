import type { Context } from "hono";
import { formatTraceparent, parseTraceparent } from "../../platform/telemetry/trace-context.ts";
import { MCP_LIFECYCLE_ROUTES } from "../../schema/routes/mcp.ts";
import type { LifecycleRequest, runLifecycleAction } from "../../services/mcp/lifecycle.ts";
import { bodySha256, idempotencyKey } from "../http/idempotency.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { serve } from "../http/serve.ts";

/** The life of MCP servers that playbooks look after (interface specification, Results and lifecycle). */
export function mcpLifecycleRoutes(run: ReturnType<typeof runLifecycleAction>) {
  return serve(MCP_LIFECYCLE_ROUTES, {
    lifecycle: async ({ params: { resource_path, action }, json }, c) => {
      const { user } = c.var;
      const trace = parseTraceparent(c.req.header("traceparent"));
      const started = await run({
        resource: resource_path,
        action,
        permit: (path) => c.var.permit("execute", path),
        may: (path) => c.var.may("execute", path),
        log: c.var.decisions,
        ...(user !== undefined && { startedBy: user.userId }),
        ...(trace !== undefined && { traceparent: formatTraceparent(trace) }),
        ...idempotencyOf(c),
      });
      return json({
        execution_id: started.executionId,
        status: started.status,
        path: started.path,
        version: started.version,
        catalog_id: started.catalogId,
        ...(started.duplicate && { duplicate: true as const }),
        resource: started.resource,
        action,
      });
    },
  });
}

/** The same key for another action is another request: the address stands for the body, which is empty. */
function idempotencyOf(c: Context<RouteEnvironment>): Pick<LifecycleRequest, "idempotency"> {
  const key = idempotencyKey(c);
  if (key === null) return {};
  const { user } = c.var;
  const caller = user === undefined ? c.var.role : `user:${user.userId}`;
  return { idempotency: { caller, key, bodySha256: bodySha256(Buffer.from(c.req.path)) } };
}
