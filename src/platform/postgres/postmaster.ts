import { readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { FlowError } from "../../schema/words/errors.ts";
import { runProgram } from "../system/run-program.ts";
import { fitsSocket } from "../unix-socket.ts";
import type { PostgresPlace } from "./place.ts";
import { findPostmaster, isImpostor, type Postmaster, pidFile } from "./postmaster-file.ts";

/** The only address that an embedded server listens on, beside the unix socket in its data folder. */
export const HOST = "127.0.0.1";

/** Durable as usual, reachable from this machine only, silent unless something is wrong. */
const SETTINGS = [
  `listen_addresses=${HOST}`,
  "unix_socket_permissions=0700",
  "log_min_messages=warning",
  "log_checkpoints=off",
  // Compiling a plan costs more than any of our statements.
  "jit=off",
];
/** A statement costs an eighth less CPU through a unix socket. The server works in its data folder, whose path may need quotes here. */
const SOCKET = "unix_socket_directories=.";
const NO_SOCKET = "unix_socket_directories=";
/** Some file systems have no sockets, such as folders of another system that are mounted into a container. */
const SOCKET_REFUSED = /could not create any Unix-domain sockets/;
/** A port may be taken between looking and starting; memory of a server that was killed is held until its children are gone. */
const START_ATTEMPTS = 10;
const PASSING = /Address already in use|could not create any TCP|still in use|lock file .* already exists/;
const RETRY_MS = 200;
/** Seconds for recovery after a crash, and for a shutdown that waits for a checkpoint. */
const START_SECONDS = 120;
const STOP_SECONDS = 60;
const SETTLE_POLL_MS = 20;
const LOG_BYTES_MAX = 1_048_576;
const LOG_TAIL = 2_000;

/**
 * Starts the server of a place without a running one, and returns its port: the required one and no other, or the one of last
 * time if it is free. Throws `FlowError` UNAVAILABLE with the end of its log.
 */
export async function launch(place: PostgresPlace, wanted?: number): Promise<number> {
  await turnLog(place);
  await removeSockets(place);
  let socket = process.platform === "win32" ? NO_SOCKET : SOCKET;
  for (let attempt = 1; ; attempt += 1) {
    const port = wanted ?? (await choosePort(place, attempt === 1));
    const began = (await logSize(place)).size;
    const options = [`-p ${port}`, ...[...SETTINGS, socket].map((setting) => `-c ${setting}`)].join(" ");
    const args = ["start", "-w", "-t", String(START_SECONDS), "-s", "-l", logFile(place), "-o", options];
    const { code, output } = await pgCtl(place, args);
    if (code === 0) {
      await writeFile(portFile(place), String(port));
      return port;
    }
    const log = (await readFile(logFile(place), "utf8").catch(() => "")).slice(began).slice(-LOG_TAIL);
    if (socket === SOCKET && SOCKET_REFUSED.test(log)) {
      socket = NO_SOCKET;
      continue;
    }
    if (attempt === START_ATTEMPTS || !PASSING.test(log)) throw doesNotStart(place, log.trim() || output);
    await sleep(RETRY_MS);
  }
}

/** Stops the server: ends sessions and writes everything to disk. A server that is already gone is no error. */
export async function shutDown(place: PostgresPlace): Promise<void> {
  if ((await findPostmaster(place.data)) === undefined) return;
  const { code, output } = await pgCtl(place, ["stop", "-m", "fast", "-w", "-t", String(STOP_SECONDS), "-s"]);
  if (code === 0 || (await findPostmaster(place.data)) === undefined) return;
  throw new FlowError("UNAVAILABLE", `The embedded PostgreSQL in ${place.data} did not stop: ${output}`);
}

/**
 * The running server of a place once it takes connections, after a start, recovery or stop has finished. A file left by a
 * killed server, with the process id of another program by now, is removed.
 */
export async function settledPostmaster(place: PostgresPlace): Promise<Postmaster | undefined> {
  for (let waitedMs = 0; ; waitedMs += SETTLE_POLL_MS) {
    const found = await findPostmaster(place.data);
    if (found === undefined) return undefined;
    if (await isImpostor(found)) {
      await rm(pidFile(place.data), { force: true });
      return undefined;
    }
    if (found.ready) return found;
    if (waitedMs >= STOP_SECONDS * 1_000) {
      const message = `PostgreSQL in ${place.data} (process ${found.pid}) neither takes connections nor ends`;
      throw new FlowError("UNAVAILABLE", `${message}. Look into ${logFile(place)}, or end that process`);
    }
    await sleep(SETTLE_POLL_MS);
  }
}

/**
 * Sockets that a killed server left, and their locks: PostgreSQL would refuse to start if another program has the process id in a
 * lock by now. Call it only while no server runs.
 */
async function removeSockets({ data }: PostgresPlace): Promise<void> {
  const left = (await readdir(data)).filter((name) => name.startsWith(SOCKET_PREFIX));
  for (const name of left) await rm(join(data, name), { force: true });
}

const SOCKET_PREFIX = ".s.PGSQL.";

/**
 * The folder of the running server's unix socket, as an address names it: undefined if it has none, or if no address can name
 * it because the path is too long or has a comma.
 */
export async function socketFolder({ data }: PostgresPlace): Promise<string | undefined> {
  const found = await findPostmaster(data);
  if (found === undefined || !found.hasSocket || data.includes(",")) return undefined;
  return fitsSocket(join(data, `${SOCKET_PREFIX}${found.port}`)) ? data : undefined;
}

/** The same port as last time, so that noted addresses stay valid; another one if it is taken. */
async function choosePort(place: PostgresPlace, mayBeOld: boolean): Promise<number> {
  const kept = mayBeOld ? Number(await readFile(portFile(place), "utf8").catch(() => "0")) : 0;
  return (await freePort(kept)) ?? (await freePort(0)) ?? 0;
}

/** The port if it is free, any free one for 0; undefined when it is taken. */
async function freePort(wanted: number): Promise<number | undefined> {
  const probe = createServer();
  const port = await new Promise<number | undefined>((resolve) => {
    probe.once("error", () => resolve(undefined));
    probe.listen(wanted, HOST, () => resolve((probe.address() as AddressInfo).port));
  });
  if (port !== undefined) await new Promise((resolve) => probe.close(resolve));
  return port;
}

function pgCtl({ account, binaries, data }: PostgresPlace, args: readonly string[]) {
  return runProgram(binaries.pgCtl, [...args, "-D", data], { account });
}

/** A log of more than 1 MiB is renamed, replacing the previous one. */
async function turnLog(place: PostgresPlace): Promise<void> {
  const { size } = await logSize(place);
  if (size > LOG_BYTES_MAX) await rename(logFile(place), `${logFile(place)}.old`);
}

async function logSize(place: PostgresPlace): Promise<{ size: number }> {
  return stat(logFile(place)).catch(() => ({ size: 0 }));
}

function logFile({ data }: PostgresPlace): string {
  return join(data, "server.log");
}

function portFile({ folder }: PostgresPlace): string {
  return join(folder, "port");
}

function doesNotStart(place: PostgresPlace, log: string): FlowError {
  const hint = `The log is ${logFile(place)}. To do without it, set FLOW_DATABASE_URL to a PostgreSQL of yours`;
  return new FlowError("UNAVAILABLE", `The embedded PostgreSQL in ${place.data} does not start: ${log}. ${hint}`);
}
