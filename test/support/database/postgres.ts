import { randomBytes } from "node:crypto";
import { after } from "node:test";
import {
  ACCESS,
  type Cluster,
  copyOf,
  createDatabase,
  createTemplates,
  databaseUrl,
  startCluster,
  type Templates,
} from "./cluster.ts";

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

/** The server that all files of a run share; undefined where a file runs by itself. */
const shared = process.env["FLOW_TEST_POSTGRES"];
const SHARED = shared === undefined ? undefined : (JSON.parse(shared) as { port: number; templates: Templates });

let own: Promise<Cluster> | undefined;

// Here and not at the first use: a hook that is added within another hook belongs to that one and runs too early.
after(async () => (await own)?.stop());

/**
 * A new database on the run's server, which drops it when this process has ended. A test file that runs by itself starts a
 * server with the first call and stops it when its tests are over. Call it at the top of a test file, or in a `before`.
 * `details` go into the statement that creates it.
 */
export async function createTestDatabase(details = ""): Promise<TestDatabase> {
  const port = await serverPort();
  // The run's server drops what belongs to no living process.
  const database = `test_${process.pid}_${randomBytes(6).toString("hex")}`;
  await createDatabase(port, database, details);
  return { ...ACCESS, port, database, url: databaseUrl(port, database) };
}

async function serverPort(): Promise<number> {
  if (SHARED !== undefined) return SHARED.port;
  own ??= startCluster();
  return (await own).port;
}

let ownTemplates: Promise<Templates> | undefined;

/** A new database with the service's schema. */
export async function createServiceDatabase(): Promise<TestDatabase> {
  return createTestDatabase(copyOf((await templates()).service));
}

/** A new database for a server process: as another server has left it. */
export async function createServedDatabase(): Promise<TestDatabase> {
  return createTestDatabase(copyOf((await templates()).served));
}

async function templates(): Promise<Templates> {
  if (SHARED !== undefined) return SHARED.templates;
  ownTemplates ??= serverPort().then(createTemplates);
  return ownTemplates;
}
