import { EventIdText } from "../../schema/api/events.ts";
import { STREAM_ROUTES } from "../../schema/routes/executions.ts";
import type { Executions } from "../../services/executions/executions.ts";
import { whileAllowed } from "../http/recheck-access.ts";
import { serve } from "../http/serve.ts";
import { check, pathId } from "../http/validate.ts";
import { eventStream, type StreamRoom } from "../streams/sse.ts";

/** Live events. A client that connects again with `Last-Event-ID` misses none. */
export function streamRoutes(executions: Pick<Executions, "follow">, room: StreamRoom) {
  return serve(STREAM_ROUTES, {
    stream: async ({ query: { after: asked = "0", values }, params }, c) => {
      const executionId = pathId(params.execution_id, "execution");
      const header = c.req.header("last-event-id") ?? "";
      const after = Number(header === "" ? asked : check(EventIdText, header, "Last-Event-ID"));
      const from = { after, isShort: values === "short" };
      return await eventStream(
        c,
        room,
        async (signal) => whileAllowed(await executions.follow(executionId, from, signal), c.var.recheck),
        (event) => ({ id: String(event.event_id), data: event }),
        () => ({ event: "end", data: { execution_id: executionId } }),
      );
    },
  });
}
