import { connect, ErrorCode, type NatsConnection, NatsError } from "nats";
import type { Secret } from "../../platform/crypto/secret.ts";
import { parseNatsAddress } from "../../platform/nats/address.ts";
import type { Logger } from "../../platform/telemetry/logger.ts";
import { messageOf } from "../../schema/words/errors.ts";
import { systemClock } from "../system-clock.ts";

/** One connection to NATS while it lasts. */
export interface NatsSession {
  readonly connection: NatsConnection;
  /** Aborted when the connection is gone. */
  readonly signal: AbortSignal;
}

/** A connection that is made again whenever it is lost, until it is closed. */
export interface NatsLink {
  /** The session now, or undefined while NATS cannot be reached. */
  current(): NatsSession | undefined;
  /** Called with each session, the present one included. It must not throw. */
  onSession(open: (session: NatsSession) => void): void;
  /** How long an answer takes, milliseconds; undefined if it takes longer than {@link LATENCY_MAX_MS}. */
  latencyMs(): Promise<number | undefined>;
  /** Ends the session and the attempts to make another. May be called more than once. */
  close(): Promise<void>;
}

/** Time for one attempt to connect. */
const CONNECT_MS = 3_000;
/** A server that is frozen, or a network that swallows packets, is noticed after two unanswered pings: 10–15 s. */
const PING_MS = 5_000;
const PINGS_MAX = 2;

/** Longest wait for one answer. */
const LATENCY_MAX_MS = 2_000;

const BACKOFF_FIRST_MS = 100;
const BACKOFF_MAX_MS = 5_000;
/** A session of this length counts as a success: the back-off begins anew. */
const LASTING_MS = 10_000;

/**
 * Connects in the background and stays connected; the caller goes on at once. It reconnects here and not in the driver, so that
 * the first connection and all others are made in one way, and nothing of a lost connection is used after it. Each kind of
 * failure is logged once per disconnection, with the servers' names and never with the address itself.
 */
export function openNatsLink(url: Secret, logger: Logger): NatsLink {
  const { servers, options } = parseNatsAddress(url.reveal());
  const openers: ((session: NatsSession) => void)[] = [];
  const stopping = new AbortController();
  const broker = servers.join(",");
  let session: NatsSession | undefined;
  const report = createReporter(broker, logger);

  const dial = async (): Promise<NatsConnection | undefined> => {
    try {
      return await connect({
        ...options,
        servers,
        name: "flow",
        reconnect: false,
        timeout: CONNECT_MS,
        pingInterval: PING_MS,
        maxPingOut: PINGS_MAX,
        noAsyncTraces: true,
      });
    } catch (error) {
      if (!stopping.signal.aborted) report.failed(error);
      return undefined;
    }
  };

  /** Until the connection is gone. */
  const live = async (connection: NatsConnection): Promise<void> => {
    const ended = new AbortController();
    session = { connection, signal: ended.signal };
    report.connected();
    void reportErrors(connection, broker, logger);
    for (const open of openers) open(session);
    const reason = await connection.closed();
    session = undefined;
    ended.abort();
    if (!stopping.signal.aborted) report.lost(reason);
  };

  const run = async (): Promise<void> => {
    for (let attempt = 0; !stopping.signal.aborted; attempt += 1) {
      const connection = await dial();
      if (connection !== undefined) {
        if (stopping.signal.aborted) return connection.close();
        const since = performance.now();
        await live(connection);
        if (performance.now() - since > LASTING_MS) attempt = 0;
      }
      await pause(attempt, stopping.signal);
    }
  };

  void run();
  return {
    current: () => session,
    onSession(open) {
      openers.push(open);
      if (session !== undefined) open(session);
    },
    async latencyMs() {
      const late = systemClock.sleep(LATENCY_MAX_MS, stopping.signal).then(() => undefined);
      return await Promise.race([session?.connection.rtt(), late]).catch(() => undefined);
    },
    async close() {
      stopping.abort();
      await session?.connection.close();
    },
  };
}

/** Half of the back-off and a random part: servers that lost the same NATS do not come back at the same moment. */
async function pause(attempt: number, signal: AbortSignal): Promise<void> {
  const ms = Math.min(BACKOFF_FIRST_MS * 2 ** Math.min(attempt, 10), BACKOFF_MAX_MS);
  await systemClock.sleep(ms / 2 + (Math.random() * ms) / 2, signal).catch(() => undefined);
}

/** Says what changed, not every attempt: a NATS that is away for a day would fill the log. */
function createReporter(broker: string, logger: Logger) {
  let lastReason = "";
  return {
    connected() {
      lastReason = "";
      logger.info({ broker }, "connected to the broker");
    },
    lost(reason: unknown) {
      const why = reason instanceof Error ? { reason: reason.message } : {};
      logger.warn({ broker, ...why }, "the broker is gone: the service goes on by polling, and connects again");
    },
    failed(error: unknown) {
      const code = error instanceof NatsError ? error.code : messageOf(error);
      const isNew = lastReason !== code;
      lastReason = code;
      if (!isNew) logger.debug({ broker, reason: code }, "the broker cannot be reached yet");
      else if (REFUSED.has(code)) logger.error({ broker, reason: code }, REFUSED_MESSAGE);
      else logger.warn({ broker, reason: code }, "the broker cannot be reached: the service goes on by polling");
    },
  };
}

const REFUSED: ReadonlySet<string> = new Set([
  ErrorCode.AuthorizationViolation,
  ErrorCode.AuthenticationExpired,
  ErrorCode.AuthenticationTimeout,
  ErrorCode.AccountExpired,
  ErrorCode.BadAuthentication,
]);
const REFUSED_MESSAGE =
  "the broker refuses the user or password of BROKER_URL: correct it and start again. The service goes on by polling";

/** Errors of NATS on an open connection, such as a subject that this user may not publish to. Each is logged once. */
async function reportErrors(connection: NatsConnection, broker: string, logger: Logger): Promise<void> {
  const logged = new Set<string>();
  for await (const status of connection.status()) {
    if (status.type !== "error") continue;
    const subject = status.permissionContext?.subject ?? "";
    const key = `${String(status.data)} ${subject}`;
    if (logged.has(key) || logged.size > ERRORS_LOGGED_MAX) continue;
    logged.add(key);
    logger.warn({ broker, reason: status.data, subject }, "the broker refuses something");
  }
}

const ERRORS_LOGGED_MAX = 20;
