import type { Context } from "hono";
import type { ClaimSecrets } from "../../platform/crypto/claim-secrets.ts";
import type { BatchAnswer, BatchStatus } from "../../schema/api/events.ts";
import { EVENT_ROUTES, REPORT_BYTES_HEADER, UNANSWERED_HEADER } from "../../schema/routes/workers.ts";
import type { Batches, BatchState } from "../../services/orchestration/batch-status.ts";
import type { Orchestrator } from "../../services/orchestration/orchestrator.ts";
import type { Attachments } from "../../services/results/attachments.ts";
import type { Pools } from "../../services/workers/pools.ts";
import { provenInstance } from "../http/authenticate.ts";
import { bodySha256, idempotencyKey } from "../http/idempotency.ts";
import { parseJson, readBody } from "../http/read-body.ts";
import { serve } from "../http/serve.ts";
import { pathId } from "../http/validate.ts";
import { eventStream, type StreamRoom } from "../streams/sse.ts";
import { splitBody, takeAttachments } from "./attachments.ts";
import { commandAnswer } from "./claimed-command.ts";
import { abilityOf, checkReportSecrets, readBatch, readEvent } from "./event-batch.ts";

/** What the routes of events need. */
export interface EventRouteDeps {
  orchestrator: Pick<Orchestrator, "report">;
  batches: Batches;
  claimSecrets: ClaimSecrets;
  pools: Pick<Pools, "has" | "hasOwn">;
  results: Pick<Attachments, "attachment" | "attached">;
  /** `FLOW_BATCH_EVENTS_MAX` and `FLOW_BATCH_BYTES_MAX`. */
  limits: { eventsMax: number; bytesMax: number };
  streams: StreamRoom;
}

const EMPTY = Buffer.alloc(0);

/** Events of workers (interface specification, Event batches). */
export function eventRoutes({ orchestrator, batches, claimSecrets, pools, results, limits, streams }: EventRouteDeps) {
  return serve(EVENT_ROUTES, {
    batch: {
      readsBody: async ({ json }, c) => {
        const body = await readBody(c.req.raw, limits.bytesMax);
        // Most reports have no attachments.
        const jsonBytes = c.req.header(REPORT_BYTES_HEADER);
        const { report, attached: bytes } = jsonBytes === undefined ? { report: body } : splitBody(body, jsonBytes);
        const batch = readBatch(parseJson(report), limits.eventsMax, Date.now(), report.length);
        const { worker, events, claim, secrets, attachments } = batch;
        checkReportSecrets(c, claimSecrets, secrets, events);
        if (claim !== undefined) provenInstance(c, claimSecrets, worker);
        const key = idempotencyKey(c);
        const isPlain = bytes === undefined && attachments.length === 0;
        const attached = isPlain ? [] : await takeAttachments(results, bytes ?? EMPTY, attachments, events);
        const outcome = await orchestrator.report({
          caller: worker,
          idempotencyKey: key,
          bodySha256: bodySha256(report, attached),
          bytes: body.length,
          events,
          ...(claim !== undefined && { claim: { ...claim, ...abilityOf(c, claim.labels, pools) } }),
          isRedelivered: Number(c.req.header(UNANSWERED_HEADER) ?? 0) > 0,
        });
        if (!outcome.duplicate) for (const payload of attached) results.attached(payload);
        const answer: BatchAnswer = {
          status: "accepted",
          request_id: outcome.requestId,
          event_ids: outcome.eventIds,
          commands_generated: outcome.commandsGenerated,
          queue_depth: outcome.queueDepth,
          duplicate: outcome.duplicate,
          idempotency_key: key,
        };
        if (claim !== undefined) answer.commands = outcome.commands.map((one) => commandAnswer(one, claimSecrets));
        return json(answer);
      },
    },
    single: {
      readsBody: async ({ json }, c) => {
        const body = await readBody(c.req.raw, limits.bytesMax);
        const { worker, event } = readEvent(parseJson(body), Date.now(), body.length);
        checkReportSecrets(c, claimSecrets, [], [event]);
        const { eventIds, commandsGenerated } = await orchestrator.report({
          caller: worker,
          idempotencyKey: idempotencyKey(c),
          bodySha256: bodySha256(body),
          bytes: body.length,
          events: [event],
          // There is no batch whose status could be queried later.
          isAwaited: true,
        });
        const answer = { status: "ok", event_id: eventIds[0] ?? 0, commands_generated: commandsGenerated } as const;
        return json(answer);
      },
    },
    status: async ({ json }, c) => json(statusOf(await batches.status(requestId(c)))),
    stream: async (_, c) => {
      const id = requestId(c);
      return await eventStream(
        c,
        streams,
        (signal) => batches.follow(id, signal),
        (state) => ({ event: "status", data: statusOf(state) }),
      );
    },
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
