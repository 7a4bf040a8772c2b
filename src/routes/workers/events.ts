import { type Context, Hono } from "hono";
import { BatchAnswer, BatchBody, BatchStatus, SingleEventAnswer, SingleEventBody } from "../../schema/api/events.ts";
import type { Batches, BatchState } from "../../services/orchestration/batch-status.ts";
import type { ReportOutcome } from "../../services/orchestration/orchestrator.ts";
import type { ReportRequest } from "../../services/orchestration/resolve-report.ts";
import { contract } from "../http/contract.ts";
import { bodySha256, idempotencyKey } from "../http/idempotency.ts";
import { parseJson, readBody } from "../http/read-body.ts";
import type { RouteEnvironment } from "../http/request-context.ts";
import { eventStream } from "../http/sse.ts";
import { pathId } from "../http/validate.ts";
import { commandAnswer } from "./claimed-command.ts";
import { readBatch, readEvent } from "./event-batch.ts";

const BATCH = contract({
  method: "post",
  path: "/api/events/batch",
  summary:
    "Takes events of commands: all of them, or none. With `claim` the answer also carries the worker's next commands",
  access: "worker",
  body: BatchBody,
  bodyLimit: "batch",
  answer: BatchAnswer,
  status: 202,
  refusals: [409, 413, 422, 504],
});

const SINGLE = contract({
  method: "post",
  path: "/api/events",
  summary: "Takes one event of a command",
  access: "worker",
  body: SingleEventBody,
  bodyLimit: "batch",
  answer: SingleEventAnswer,
  refusals: [409, 413, 422, 504],
});

const STATUS = contract({
  method: "get",
  path: "/api/events/batch/:request_id/status",
  summary: "How far a batch of events is",
  access: "worker",
  answer: BatchStatus,
  refusals: [404],
});

const STREAM = contract({
  method: "get",
  path: "/api/events/batch/:request_id/stream",
  summary:
    "Server-sent events: the batch's status as event `status`, again after each change, until it is completed or failed",
  access: "worker",
  contentType: "text/event-stream",
  refusals: [404],
});

/** Contracts of {@link eventRoutes}. */
export const EVENT_CONTRACTS = [BATCH, SINGLE, STATUS, STREAM];

/** What the routes of events need. */
export interface EventRouteDeps {
  report(asked: ReportRequest): Promise<ReportOutcome>;
  batches: Batches;
  /** `FLOW_BATCH_EVENTS_MAX` and `FLOW_BATCH_BYTES_MAX`. */
  limits: { eventsMax: number; bytesMax: number };
  stopping: AbortSignal;
}

/** Events of workers (interface specification, Event batches). */
export function eventRoutes({ report, batches, limits, stopping }: EventRouteDeps) {
  return new Hono<RouteEnvironment>()
    .post(BATCH.path, async (c) => {
      const body = await readBody(c.req.raw, limits.bytesMax);
      const { worker, events, claim } = readBatch(parseJson(body), limits.eventsMax, Date.now(), body.length);
      const key = idempotencyKey(c);
      const outcome = await report({
        caller: worker,
        idempotencyKey: key,
        bodySha256: bodySha256(body),
        events,
        ...(claim !== undefined && { claim }),
      });
      const answer: BatchAnswer = {
        status: "accepted",
        request_id: outcome.requestId,
        event_ids: outcome.eventIds,
        commands_generated: outcome.commandsGenerated,
        queue_depth: outcome.queueDepth,
        duplicate: outcome.duplicate,
        idempotency_key: key,
      };
      if (claim !== undefined) answer.commands = outcome.commands.map(commandAnswer);
      return c.json(answer, 202);
    })
    .post(SINGLE.path, async (c) => {
      const body = await readBody(c.req.raw, limits.bytesMax);
      const { worker, event } = readEvent(parseJson(body), Date.now(), body.length);
      const { eventIds, commandsGenerated } = await report({
        caller: worker,
        idempotencyKey: idempotencyKey(c),
        bodySha256: bodySha256(body),
        events: [event],
        // There is no batch whose status could be asked for later.
        isAwaited: true,
      });
      const answer = { status: "ok", event_id: eventIds[0] ?? 0, commands_generated: commandsGenerated } as const;
      return c.json(answer satisfies SingleEventAnswer);
    })
    .get(STATUS.path, async (c) => c.json(statusOf(await batches.status(requestId(c)))))
    .get(STREAM.path, async (c) => {
      const id = requestId(c);
      return await eventStream(
        c,
        stopping,
        (signal) => batches.follow(id, signal),
        (state) => ({ event: "status", data: statusOf(state) }),
      );
    });
}

function requestId(c: Context): string {
  return pathId(c.req.param("request_id") ?? "", "event batch");
}

function statusOf(batch: BatchState): BatchStatus {
  return {
    request_id: batch.requestId,
    state: batch.state,
    ...(batch.code !== null && { code: batch.code }),
    ...(batch.message !== null && { message: batch.message }),
    event_ids: batch.eventIds,
    commands_generated: batch.commandsGenerated,
    queue_depth: batch.queueDepth,
    created_at: batch.createdAt.toISOString(),
    updated_at: batch.updatedAt.toISOString(),
  };
}
