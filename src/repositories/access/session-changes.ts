import { setTimeout as sleep } from "node:timers/promises";
import postgres, { type Sql } from "postgres";
import { parseDatabaseUrl } from "../../platform/config/database-address.ts";
import { APPLICATION_NAME } from "../../platform/postgres/application-name.ts";
import { createDialler } from "../database/dial.ts";
import { driverOptions, socketOf } from "../database/driver.ts";

/** Sessions that are not what they were: that of a token (SHA-256, hex), or perhaps all. */
export type SessionChange = { tokenSha256: string } | "all";

/** Handlers of {@link listenForSessionChanges}. They must not throw. */
export interface SessionChangeHandlers {
  /** From now on `changed` is called. */
  began(): void;
  changed(change: SessionChange): void;
  /** From now on changes are missed, until `began` is called again. */
  lost(error: unknown): void;
}

/** The channel on which triggers of the schema `auth` announce changes, whichever client makes them. */
const CHANNEL = "flow_sessions";
/** Name that `pg_stat_activity` shows. */
export const LISTENER = `${APPLICATION_NAME} sessions`;
/** A connection that died silently would look like one without notifications. */
const PROBE_MS = 5_000;
const PROBE_ANSWER_MS = 3_000;
const CONNECT_MS = 4_000;
const AGAIN_MS = 500;

/**
 * Listens for sessions that end or whose user's permissions change, from the commit on, whichever client wrote it: a server, a
 * playbook, a person at a prompt. It uses a dedicated connection and reconnects when it is lost: the driver's own listening
 * ends with the first failed attempt to connect. The returned function stops it.
 */
export function listenForSessionChanges(url: string, handlers: SessionChangeHandlers): () => Promise<void> {
  const closing = new AbortController();
  const running = (async () => {
    while (!closing.signal.aborted) {
      await listenOnce(url, handlers, closing.signal);
      await sleep(AGAIN_MS, undefined, { signal: closing.signal }).catch(() => undefined);
    }
  })();
  return async () => {
    closing.abort();
    await running;
  };
}

/** Until the connection is lost, or the signal is aborted. */
async function listenOnce(url: string, handlers: SessionChangeHandlers, closing: AbortSignal): Promise<void> {
  const over = new AbortController();
  const end = () => over.abort();
  closing.addEventListener("abort", end, { once: true });
  const sql = connect(url, handlers.changed, end);
  let error: unknown = new Error("the connection was closed");
  try {
    await sql.unsafe(`listen ${CHANNEL}`);
    if (!over.signal.aborted) handlers.began();
    while (!over.signal.aborted) {
      await sleep(PROBE_MS, undefined, { signal: over.signal }).catch(() => undefined);
      if (!over.signal.aborted) await probe(sql);
    }
  } catch (cause) {
    error = cause;
  } finally {
    closing.removeEventListener("abort", end);
    if (!closing.aborted) handlers.lost(error);
    await sql.end({ timeout: 1 });
  }
}

async function probe(sql: Sql): Promise<void> {
  const answered = new AbortController();
  const late = sleep(PROBE_ANSWER_MS, undefined, { signal: answered.signal }).then(() => {
    throw new Error("the connection does not answer");
  });
  late.catch(() => undefined);
  try {
    await Promise.race([sql.unsafe("select 1"), late]);
  } finally {
    answered.abort();
  }
}

function connect(url: string, onChange: SessionChangeHandlers["changed"], closed: () => void): Sql {
  const address = parseDatabaseUrl(url);
  const options = {
    ...driverOptions(address, socketOf(createDialler(address, CONNECT_MS))),
    max: 1,
    connect_timeout: CONNECT_MS / 1_000,
    max_lifetime: null,
    onclose: closed,
    connection: { ...address.parameters, application_name: LISTENER },
    // Known to the driver, and not to its types.
    onnotify: (channel: string, payload: string) => {
      if (channel === CHANNEL) onChange(/^[0-9a-f]{64}$/.test(payload) ? { tokenSha256: payload } : "all");
    },
  };
  return postgres(options);
}
