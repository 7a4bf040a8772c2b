import type { Socket } from "node:net";
import type { Logger } from "../../platform/telemetry/logger.ts";
import type { WorkerConnectionMetrics } from "../../platform/telemetry/metrics.ts";
import { BODY_BYTES_MAX } from "../../routes/http/read-body.ts";
import { answerMessages, type MessageApi, type MessageCaller } from "../../routes/workers/connection.ts";
import {
  CLOSE_REASONS,
  type CloseReason,
  CONNECTION_PROTOCOL,
  CONNECTION_ROUTES,
} from "../../schema/routes/messages.ts";
import type { Upgrades } from "./answers.ts";
import { type Connection, type ConnectionParts, openConnection } from "./worker-connection.ts";

/** Times of a server: 60 s of silence, 30 s for a message or for reading an answer. */
export const CONNECTION_TIMES = { lookMs: 5_000, silentLooks: 12, slowLooks: 6 } as const;

/** Calls under way get this long to end when the server stops, as those by HTTP do. */
const DRAIN_MS = 8_000;

/** The worker connections of a server, as a protocol of its listener: every call on them is answered by its API. */
export function workerUpgrades(
  app: MessageApi,
  { config, metrics, logger }: { config: { batchBytesMax: number }; metrics: WorkerConnectionMetrics; logger: Logger },
): Upgrades {
  const connections = createWorkerConnections({
    answer: answerMessages(app),
    limits: { ...CONNECTION_TIMES, bodyBytesMax: Math.max(BODY_BYTES_MAX, config.batchBytesMax) },
    metrics,
    closed: (reason) => {
      const line = `a worker connection was closed: ${CLOSE_REASONS[reason]}`;
      if (reason === "stopping" || reason === "idle") logger.debug({ reason }, line);
      else logger.info({ reason }, line);
    },
  });
  return { protocol: CONNECTION_PROTOCOL, path: CONNECTION_ROUTES.open.path, ...connections };
}

/** What {@link createWorkerConnections} needs. */
export interface WorkerConnectionsParts extends ConnectionParts {
  metrics: WorkerConnectionMetrics;
}

/** The worker connections of one server. */
export interface WorkerConnections {
  /** Takes over a connection that was upgraded; `head`: what came after the request. */
  take(socket: Socket, head: Buffer, caller: MessageCaller): void;
  /** Tells every worker to make its next calls elsewhere. */
  leave(): void;
  /** Lets calls under way end, then closes every connection. */
  close(): Promise<void>;
}

/** None yet. */
export function createWorkerConnections(parts: WorkerConnectionsParts): WorkerConnections {
  const open = new Set<Connection>();
  let look: NodeJS.Timeout | undefined;
  let gone = () => {};
  const ended = (connection: Connection, reason: CloseReason | "left") => {
    open.delete(connection);
    parts.metrics.workerConnectionClosed(reason, open.size);
    if (open.size > 0) return;
    clearInterval(look);
    look = undefined;
    gone();
  };
  return {
    take(socket, head, caller) {
      const connection = openConnection(parts, caller, socket, (reason) => ended(connection, reason));
      open.add(connection);
      parts.metrics.workerConnectionOpened(open.size);
      look ??= setInterval(() => {
        for (const one of open) one.look();
      }, parts.limits.lookMs).unref();
      connection.begin(head);
    },
    leave() {
      for (const one of open) one.leave();
    },
    async close() {
      if (open.size === 0) return;
      await new Promise<void>((resolve) => {
        gone = resolve;
        for (const one of open) one.stop();
        setTimeout(() => {
          for (const one of open) one.cut();
        }, DRAIN_MS).unref();
      });
    },
  };
}
