import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import postgres from "postgres";
import { withFolderLock } from "../system/folder-lock.ts";
import { APPLICATION_NAME } from "./application-name.ts";
import { AUTH_NAME, type ClusterPasswords, ensureCluster, readPasswords, SERVICE_NAME } from "./cluster.ts";
import { findPlace, type PostgresPlace } from "./place.ts";
import { HOST, launch, settledPostmaster, shutDown, socketFolder } from "./postmaster.ts";
import { keepRunning } from "./watch.ts";

/** A PostgreSQL server that this program looks after. */
export interface EmbeddedPostgres {
  /** `postgres://user:password@127.0.0.1:port/flow`. */
  url: string;
  /**
   * The same through its unix socket, which costs an eighth less CPU per statement, and by TCP if it cannot be opened. Equal to `url`
   * where it has no socket.
   */
  socketUrl: string;
  port: number;
  /**
   * A second account, for login playbooks: it may connect, and the owner of a schema decides what else it may do. Undefined:
   * another process has been using the server since before there was such an account.
   */
  authAccount: { user: string; password: string } | undefined;
  /** The data folder: the requested one, or the one that its user can reach. */
  data: string;
  /** False: it ran already. Another process of this program uses the folder, or one was killed and left it running. */
  started: boolean;
  /**
   * Stops it, unless another process of this program is connected: the last one out stops it. Close the own pool first. May
   * be called twice.
   */
  stop(): Promise<void>;
}

/** What {@link startEmbeddedPostgres} needs. */
export interface EmbeddedPostgresOptions {
  /** Folder of its data, password, port and log; made when absent. */
  folder: string;
  /** Called with messages for the log, a line each: a first start, a server that runs already. */
  log: (line: string) => void;
  /** It is started again whenever it dies, until `stop`. Default false. */
  keepRunning?: boolean;
}

/**
 * Starts the server of this folder, or finds it running. It is no member of the terminal's process group: Ctrl-C reaches the
 * program alone, which stops the server when nothing needs it any more. A program that was killed leaves it running for the next.
 *
 * Throws `FlowError` UNAVAILABLE with what PostgreSQL said.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const place = await findPlace(resolve(options.folder), options.log);
  const { passwords, port, started } = await withFolderLock(place.folder, () => ensureRunning(place, options.log));
  const url = serviceUrl(passwords, port);
  const socketUrl = await throughSocket(place, passwords, port, url);
  const authAccount = passwords.auth === undefined ? undefined : { user: AUTH_NAME, password: passwords.auth };
  let stopping: Promise<void> | undefined;
  const letDie = options.keepRunning === true ? keepRunning(place, port, options.log) : async () => undefined;
  const stop = () => {
    stopping ??= letDie().then(() => withFolderLock(place.folder, () => stopUnlessUsed(place, url, options.log)));
    return stopping;
  };
  return { url, socketUrl, port, authAccount, data: place.data, started, stop };
}

function serviceUrl({ service }: ClusterPasswords, port: number): string {
  return `postgres://${SERVICE_NAME}:${service}@${HOST}:${port}/${SERVICE_NAME}`;
}

async function throughSocket(
  place: PostgresPlace,
  { service }: ClusterPasswords,
  port: number,
  url: string,
): Promise<string> {
  const folder = await socketFolder(place);
  if (folder === undefined) return url;
  const hosts = `host=${encodeURIComponent(folder)},${HOST}&port=${port}`;
  return `postgres://${SERVICE_NAME}:${service}@/${SERVICE_NAME}?${hosts}`;
}

async function ensureRunning(place: PostgresPlace, log: (line: string) => void) {
  const running = await settledPostmaster(place);
  if (running !== undefined) {
    log(`PostgreSQL runs already in ${place.data}, process ${running.pid}`);
    const passwords = await readPasswords(place);
    if (passwords.auth !== undefined) return { passwords, port: running.port, started: false };
    // A program of an older version was killed and left it. An account is made while no server runs.
    await stopUnlessUsed(place, serviceUrl(passwords, running.port), log);
    if ((await settledPostmaster(place)) !== undefined) return { passwords, port: running.port, started: false };
  }
  const passwords = await ensureCluster(place, log);
  return { passwords, port: await launch(place), started: true };
}

/** Connections that have just been closed are still counted for a moment. */
const LEAVE_MAX_MS = 1_000;
const LEAVE_POLL_MS = 25;

async function stopUnlessUsed(place: PostgresPlace, url: string, log: (line: string) => void): Promise<void> {
  const sql = postgres(url, { max: 1, connection: { application_name: `${APPLICATION_NAME}-stop` } });
  try {
    for (let waitedMs = 0; await isUsed(sql); waitedMs += LEAVE_POLL_MS) {
      if (waitedMs >= LEAVE_MAX_MS) {
        log("PostgreSQL stays up: another process of flow uses it");
        return;
      }
      await sleep(LEAVE_POLL_MS);
    }
  } finally {
    await sql.end({ timeout: 1 });
  }
  await shutDown(place);
}

async function isUsed(sql: postgres.Sql): Promise<boolean> {
  const connections = sql`select from pg_stat_activity where application_name = ${APPLICATION_NAME} limit 1`;
  return connections.then(
    ({ length }) => length > 0,
    // It has ended, or cannot answer: it is not in use.
    () => false,
  );
}
