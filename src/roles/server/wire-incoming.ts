import { createEgressGuard, PRIVATE_RANGES } from "../../platform/http/egress.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import type { Database } from "../../repositories/database/database.ts";
import { defined } from "../../schema/words/defined.ts";
import type { Audit } from "../../services/access/audit.ts";
import type { Credentials } from "../../services/credentials/credentials.ts";
import type { Executions } from "../../services/executions/executions.ts";
import {
  createStreamTriggers,
  type ReadStream,
  type StreamTriggers,
} from "../../services/stream-triggers/stream-triggers.ts";
import type { Triggers } from "../../services/triggers/triggers.ts";
import { createDeliveryLog, type DeliveryLog } from "../../services/webhooks/delivery-log.ts";
import { createHookSecrets } from "../../services/webhooks/hook-secrets.ts";
import { createWebhooks, type Webhooks } from "../../services/webhooks/webhooks.ts";

/** What fires triggers from outside. */
export interface Incoming {
  webhooks: Webhooks;
  deliveries: DeliveryLog;
  streamTriggers: StreamTriggers;
}

/** What {@link wireIncoming} needs. */
export interface IncomingDeps {
  database: Database;
  triggers: Triggers;
  executions: Executions;
  credentials: Credentials;
  audit: Audit;
  /** Name of this server. */
  processor: string;
  /** Milliseconds since 1970. */
  now(): number;
  /** Reports what a trigger cannot do, or that it reads: `trigger` is its path and name. */
  onTrigger?(about: { trigger: string; problem?: string }): void;
  onFault(error: unknown): void;
}

/** Builds webhooks and the reading of streams. */
export function wireIncoming(deps: IncomingDeps): Incoming {
  const { database, triggers, executions, credentials, audit, processor, now } = deps;
  const tell = ({ path, name }: { path: string; name: string }, problem?: string) =>
    deps.onTrigger?.({ trigger: `${path}/${name}`, ...(problem !== undefined && { problem }) });
  const secrets = createHookSecrets({
    credentials,
    onUnreadable: (trigger, error) => tell(trigger, error.message),
    now: () => performance.now(),
  });
  const deliveries = createDeliveryLog({
    ...{ database, now },
    onLost: (error, rows) => deps.onFault(new Error(`${rows} rows about deliveries were lost`, { cause: error })),
  });
  return {
    deliveries,
    webhooks: createWebhooks({
      ...{ triggers, executions, secrets, audit, log: deliveries, now },
      busy: () => performance.now(),
    }),
    streamTriggers: createStreamTriggers({
      ...{ database, triggers, credentials, readStream, holder: processor, now },
      onProblem: tell,
      onReading: (trigger) => tell(trigger),
    }),
  };
}

/** An operator has stored the credential, so private addresses may be reached; those of a machine's metadata may not. */
const EGRESS = createEgressGuard({ allowPrivate: PRIVATE_RANGES });

/** Reads with the connection of the tasks of kind `nats`. The driver is loaded when there is a trigger that needs it. */
export const readStream: ReadStream = async (request, reader, signal) => {
  const [{ readStream: read }, { readNatsTarget }] = await Promise.all([
    import("../../tools/nats/stream.ts"),
    import("../../tools/nats/target.ts"),
  ]);
  const { broker, stream, subject, durable, isOwn, description, deliver, maxInFlight, ackWaitMs } = request;
  const target = readNatsTarget({}, { [broker.name]: { ...broker, isStored: true } });
  const consumer = { stream, ...defined({ subject }), durable, isOwn, description, deliver, maxInFlight, ackWaitMs };
  await read(consumer, { target, egress: EGRESS, ...reader }, signal);
};

/** Says in the log what a trigger cannot do. */
export function triggerLog(logger: Pick<Logger, "info" | "warn">): NonNullable<IncomingDeps["onTrigger"]> {
  return ({ trigger, problem }) => {
    if (problem === undefined) logger.info({ trigger }, "reads a stream for a trigger");
    else logger.warn({ trigger, reason: problem }, "a trigger cannot fire");
  };
}
