import { Hono } from "hono";
import * as v from "valibot";
import { EventIdText, ShortValues } from "../../schema/api/events.ts";
import type { Executions } from "../../services/executions/executions.ts";
import { contract } from "../http/contract.ts";
import { whileAllowed } from "../http/recheck-access.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { eventStream } from "../http/sse.ts";
import { theExecution } from "../http/subject.ts";
import { check, pathId, queryOf } from "../http/validate.ts";

const STREAM = contract({
  method: "get",
  path: "/api/executions/:execution_id/stream",
  summary:
    "Server-sent events: the execution's events as they come, `id:` being the event's; `event: end` after the last",
  access: "worker",
  user: { action: "view", of: theExecution },
  query: v.object({
    after: v.exactOptional(v.pipe(EventIdText, v.description("Events after this one. The header Last-Event-ID wins."))),
    values: v.exactOptional(ShortValues),
  }),
  contentType: "text/event-stream",
  refusals: [404, 422],
});

/** Contracts of {@link streamRoutes}. */
export const STREAM_CONTRACTS = [STREAM];

/** Live events. A client that connects again with `Last-Event-ID` misses none. */
export function streamRoutes(executions: Pick<Executions, "follow">, stopping: AbortSignal) {
  return new Hono<RouteEnvironment>().get(STREAM.path, queryOf(STREAM.query), async (c) => {
    const executionId = pathId(c.req.param("execution_id"), "execution");
    const header = c.req.header("last-event-id") ?? "";
    const { after: asked = "0", values } = c.req.valid("query");
    const after = Number(header === "" ? asked : check(EventIdText, header, "Last-Event-ID"));
    const from = { after, isShort: values === "short" };
    return await eventStream(
      c,
      stopping,
      async (signal) => whileAllowed(await executions.follow(executionId, from, signal), c.var.recheck),
      (event) => ({ id: String(event.event_id), data: event }),
      () => ({ event: "end", data: { execution_id: executionId } }),
    );
  });
}
