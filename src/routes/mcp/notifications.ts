import type { Context } from "hono";
import type { AgentCaller } from "../../services/mcp/tool-calls.ts";
import { whileAllowed } from "../http/recheck-access.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { eventStream } from "../http/sse.ts";
import { agentCaller } from "./caller.ts";
import type { McpParts } from "./deps.ts";

/** What the server tells by itself: that the caller's tools are other ones. */
export async function openNotices(
  { agentChanges, stopping }: Pick<McpParts, "agentChanges" | "stopping">,
  c: Context<RouteEnvironment>,
): Promise<Response> {
  return await eventStream(
    c,
    stopping,
    (signal) => {
      const changes = whileAllowed(agentChanges.follow(signal), c.var.recheck);
      return Promise.resolve(withRights(changes, agentCaller(c)));
    },
    () => ({ event: "message", data: { jsonrpc: "2.0", method: "notifications/tools/list_changed" } }),
  );
}

/** Tools change with what the caller may call, too. */
async function* withRights(
  changes: AsyncGenerator<"changed" | "idle">,
  caller: AgentCaller,
): AsyncGenerator<"changed" | "idle"> {
  let rights = JSON.stringify(caller.callable());
  for await (const change of changes) {
    const before = rights;
    rights = JSON.stringify(caller.callable());
    yield rights === before ? change : "changed";
  }
}
