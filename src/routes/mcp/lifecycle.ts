import type { Context } from "hono";
import { formatTraceparent, parseTraceparent } from "../../platform/telemetry/trace-context.ts";
import type { McpCallBody } from "../../schema/api/catalog.ts";
import type { ExecuteAnswer } from "../../schema/api/executions.ts";
import { MCP_LIFECYCLE_ROUTES } from "../../schema/routes/mcp.ts";
import type { Started } from "../../services/executions/start-execution.ts";
import type { inspectMcpResource } from "../../services/mcp/inspect.ts";
import type { LifecycleRequest, runLifecycleAction } from "../../services/mcp/lifecycle.ts";
import { documentCaller } from "../http/audit-caller.ts";
import { bodySha256, idempotencyKey, keyOwner } from "../http/idempotency.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { serve } from "../http/serve.ts";

/** Calls of MCP servers, and the life of those that playbooks look after (interface specification, Results and lifecycle). */
export function mcpLifecycleRoutes(
  run: ReturnType<typeof runLifecycleAction>,
  inspect: ReturnType<typeof inspectMcpResource>,
) {
  const call = callResource(inspect);
  return serve(MCP_LIFECYCLE_ROUTES, {
    call: async ({ params: { resource_path }, body, json }, c) => json(await call(resource_path, body, c)),
    callByName: async ({ body, json }, c) => json(await call(body.resource, body, c)),
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
      return json({ ...startedAnswer(started), resource: started.resource, action });
    },
  });
}

/** Calls a resource, and answers with the execution that does. */
function callResource(inspect: ReturnType<typeof inspectMcpResource>) {
  return async (
    resource: string,
    { method, tool, arguments: given = {} }: McpCallBody,
    c: Context<RouteEnvironment>,
  ) => {
    const { user } = c.var;
    const bytes = Buffer.from(JSON.stringify({ method, tool, arguments: given }));
    const key = idempotencyKey(c);
    const trace = parseTraceparent(c.req.header("traceparent"));
    const started = await inspect({
      ...{ resource, method, tool, arguments: given },
      bytes: bytes.length,
      callerOf: (content) => documentCaller(c, content),
      permit: (path) => c.var.permit("execute", path),
      may: (path) => c.var.may("execute", path),
      log: c.var.decisions,
      ...(user !== undefined && { startedBy: user.userId }),
      ...(trace !== undefined && { traceparent: formatTraceparent(trace) }),
      // The same key for another resource is another call.
      ...(key !== null && {
        idempotency: {
          caller: keyOwner(c),
          key,
          bodySha256: bodySha256(Buffer.concat([Buffer.from(`${c.req.path}\n${resource}\n`), bytes])),
        },
      }),
    });
    await c.var.decisions.settle({ executionId: started.executionId });
    return { ...startedAnswer(started), resource: started.resource };
  };
}

function startedAnswer({ executionId, status, path, version, catalogId, duplicate }: Started): ExecuteAnswer {
  return {
    ...{ execution_id: executionId, status, path, version, catalog_id: catalogId },
    ...(duplicate && { duplicate: true as const }),
  };
}

/** The same key for another action is another request: the address stands for the body, which is empty. */
function idempotencyOf(c: Context<RouteEnvironment>): Pick<LifecycleRequest, "idempotency"> {
  const key = idempotencyKey(c);
  if (key === null) return {};
  return { idempotency: { caller: keyOwner(c), key, bodySha256: bodySha256(Buffer.from(c.req.path)) } };
}
