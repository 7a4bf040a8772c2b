import { Pool } from "undici";
import type { Secret } from "../platform/crypto/secret.ts";
import { readMessages } from "../platform/http/sse.ts";
import type { Logger } from "../platform/telemetry/logger.ts";
import { type ChangedSessions, changedSessions } from "../schema/api/gateway.ts";
import { messageOf } from "../schema/words/errors.ts";
import { systemClock } from "./system-clock.ts";

/** What {@link followAccessChanges} needs. */
export interface AccessChangesDeps {
  /** The server's, without a slash at its end. */
  url: string;
  /** The operator's. */
  token: Secret | undefined;
  logger: Logger;
  /** Every change is received from now on, or (`false`) none. */
  onListening(isListening: boolean): void;
  changed(change: ChangedSessions): void;
}

const CONNECT_MS = 5_000;
/** Three times the time between two signs of life of the server's streams. */
const SILENCE_MS = 45_000;
/** Waits between attempts: doubling from the first to the last, a random part of each. */
const FIRST_MS = 200;
const LAST_MS = 5_000;

/**
 * Follows the server's stream of changes of sessions, users and roles, and reconnects whenever it ends. The returned function
 * stops it.
 */
export function followAccessChanges(deps: AccessChangesDeps): () => Promise<void> {
  const { origin, pathname } = new URL(deps.url);
  const path = `${pathname.replace(/\/$/, "")}/api/auth/changes`;
  const pool = new Pool(origin, { connections: 1, connect: { timeout: CONNECT_MS }, bodyTimeout: SILENCE_MS });
  const stopping = new AbortController();
  const connectionLog = createConnectionLog(deps.logger);
  const following = (async () => {
    for (let attempt = 0; !stopping.signal.aborted; attempt += 1) {
      try {
        const { statusCode, body } = await pool.request({
          method: "GET",
          path,
          headers: {
            accept: "text/event-stream",
            ...(deps.token !== undefined && { authorization: `Bearer ${deps.token.reveal()}` }),
          },
          headersTimeout: SILENCE_MS,
          signal: stopping.signal,
        });
        if (statusCode !== 200) {
          await body.dump();
          throw new Error(`status ${statusCode}${statusCode === 401 ? ": FLOW_SERVER_TOKEN is not the server's" : ""}`);
        }
        attempt = 0;
        connectionLog.connected();
        // The server listens for changes before it answers: everything read from here on is newer than the missed changes.
        deps.onListening(true);
        for await (const messages of readMessages(body)) {
          for (const { data } of messages) deps.changed(changedSessions(data));
        }
        throw new Error("the stream ended");
      } catch (error) {
        deps.onListening(false);
        if (!stopping.signal.aborted) connectionLog.away(error);
      }
      const ms = Math.min(LAST_MS, FIRST_MS * 2 ** Math.min(attempt, 10));
      await systemClock.sleep(ms / 2 + (Math.random() * ms) / 2, stopping.signal).catch(() => undefined);
    }
  })();
  return async () => {
    stopping.abort();
    await following;
    await pool.destroy();
  };
}

/** Says what changed, not every attempt. */
function createConnectionLog(logger: Logger) {
  let last = "";
  return {
    connected() {
      if (last !== "") logger.info({}, "changes of sessions and roles are received again");
      last = "";
    },
    away(error: unknown) {
      const reason = messageOf(error);
      const what = "changes of sessions and roles are not received: each session is checked with the server";
      if (reason !== last) logger.warn({ reason }, what);
      last = reason;
    },
  };
}
