import { randomUUID } from "node:crypto";
import type { NatsError } from "nats";
import type { Logger } from "../../platform/telemetry/logger.ts";
import type { Broker } from "../../ports/broker.ts";
import type { Notice } from "../../schema/words/notice.ts";
import { createInProcessBroker } from "../in-process-broker.ts";
import { systemClock } from "../system-clock.ts";
import { createCommandLog } from "./command-log.ts";
import type { NatsLink, NatsSession } from "./connection.ts";
import { COMMANDS_SUBJECT, decodeNotices, EXECUTIONS_SUBJECT, encodeNotices, SENT_IDS_MAX } from "./message.ts";
import { createNatsOutbox, type NatsOutbox } from "./outbox.ts";

/** Ids that wait while NATS is away: some 3 MB, and more than a server can issue before others find them by polling. */
const OUTBOX_IDS_MAX = 10_000;
/** Time to send what waits, at the end. */
const LAST_SEND_MS = 1_000;

/** What {@link createNatsBroker} needs. */
export interface NatsBrokerDeps {
  /** The caller closes it, after the broker. */
  link: NatsLink;
  logger: Logger;
  /** Milliseconds between looks at the stream. Default 10,000. */
  lookMs?: number;
}

/**
 * The broker of several servers. Subscribers of this process get its notices directly; NATS carries them to the others, at
 * least once while this process lives and NATS comes back before the outbox is full. Notices that come back to their sender are
 * ignored. At most {@link SENT_IDS_MAX} ids are under way unconfirmed, so that a NATS which does not read costs no memory.
 */
export function createNatsBroker({ link, logger, lookMs }: NatsBrokerDeps): Broker {
  const me = randomUUID();
  const local = createInProcessBroker(logger);
  /** The session that has everything in place to send. */
  let ready: NatsSession | undefined;
  let closed = false;

  const onMessage = (data: Uint8Array) => {
    const message = decodeNotices(data);
    if (typeof message === "string") logger.debug({ bytes: data.length, reason: message }, "a message was ignored");
    else if (message.from !== me) for (const notice of message.notices) local.publish(notice);
  };
  const log = createCommandLog(logger, onMessage, lookMs);

  const sender = createSender(me, logger, () => ready);

  const begin = async (session: NatsSession): Promise<void> => {
    const { connection, signal } = session;
    subscribe(session, onMessage, logger);
    await connection.flush();
    // Notices sent before the stream exists reach only servers that are connected already.
    await log.follow(session);
    if (signal.aborted) return;
    ready = session;
    signal.addEventListener("abort", () => {
      if (ready === session) ready = undefined;
    });
    logger.info({}, "notices go to and come from other servers");
    sender.send();
  };

  link.onSession((session) => {
    if (closed) return;
    void begin(session).catch((err: unknown) => {
      if (!session.signal.aborted)
        logger.debug({ err }, "the connection to the broker ended while it was taken into use");
    });
  });

  return {
    publish(notice) {
      if (closed) return;
      local.publish(notice);
      sender.add(notice);
      sender.send();
    },
    subscribe: (handler) => local.subscribe(handler),
    connected: () => !closed && ready !== undefined,
    async close() {
      if (closed) return;
      closed = true;
      await local.close();
      await within(LAST_SEND_MS, sender.sent());
    },
  };
}

/** What other servers are to know, and its way there through the session that is ready. */
function createSender(me: string, logger: Logger, ready: () => NatsSession | undefined) {
  const outbox = createNatsOutbox(OUTBOX_IDS_MAX);
  let sending: Promise<void> | undefined;
  let dropping = false;

  const add = (notice: Notice) => {
    const dropped = outbox.add(notice);
    if (dropped > 0 && !dropping)
      logger.warn({ dropped }, "notices for other servers are dropped: they find the work by polling");
    dropping ||= dropped > 0;
  };

  /** One at a time; what is added meanwhile goes with the next message. */
  const send = () => {
    const session = ready();
    if (session === undefined || outbox.size() === 0) return;
    sending ??= sendAll(session, outbox, me, add).then((isDrained) => {
      sending = undefined;
      if (isDrained) dropping = false;
      // What came in the last moment, or belongs to the next session. Not on the same session after a failure: it has ended,
      // and trying on until it says so would let nothing else run.
      if (isDrained || ready() !== session) send();
    });
  };

  return { add, send, sent: () => sending ?? Promise.resolve() };
}

async function within(ms: number, work: Promise<void>): Promise<void> {
  const done = new AbortController();
  const late = systemClock.sleep(ms, done.signal).catch(() => undefined);
  await Promise.race([work, late]);
  done.abort();
}

function subscribe({ connection }: NatsSession, onMessage: (data: Uint8Array) => void, logger: Logger): void {
  for (const subject of [COMMANDS_SUBJECT, EXECUTIONS_SUBJECT]) {
    connection.subscribe(subject, {
      // A callback and no iterator: what is not read at once would pile up in the driver, without a limit.
      callback: (error: NatsError | null, message) => {
        if (error === null) onMessage(message.data);
        else logger.warn({ subject, reason: error.code }, "the broker ended a subscription");
      },
    });
  }
}

/** Sends until nothing waits, which gives true. What was not confirmed goes back: doubled is better than lost. */
async function sendAll(
  session: NatsSession,
  outbox: NatsOutbox,
  me: string,
  putBack: (notice: Notice) => void,
): Promise<boolean> {
  // The rest of this turn of the event loop publishes more, as a rule.
  await Promise.resolve();
  while (outbox.size() > 0) {
    const notices = outbox.take(SENT_IDS_MAX);
    if (await isSent(session, encodeNotices(me, notices))) continue;
    for (const notice of notices) putBack(notice);
    return false;
  }
  return true;
}

/** Whether NATS has confirmed these messages. The driver leaves a flush open for ever when the connection ends. */
function isSent({ connection, signal }: NatsSession, messages: ReturnType<typeof encodeNotices>): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (isConfirmed: boolean) => {
      signal.removeEventListener("abort", fail);
      resolve(isConfirmed);
    };
    const fail = () => settle(false);
    signal.addEventListener("abort", fail);
    try {
      for (const { subject, text } of messages) connection.publish(subject, text);
      connection.flush().then(() => settle(true), fail);
    } catch {
      // Publishing on a connection that has ended throws; `signal` reports it in a moment.
      fail();
    }
  });
}
