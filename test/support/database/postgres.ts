import { randomBytes } from "node:crypto";
import { after } from "node:test";
import { ACCESS, type Cluster, createDatabase, createTemplate, databaseUrl, startCluster } from "./cluster.ts";

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

/** Address of the template on the server that all files of a run share; unset where a file runs by itself. */
const SHARED = process.env["FLOW_TEST_POSTGRES"];

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
  if (SHARED !== undefined) return Number(new URL(SHARED).port);
  own ??= startCluster();
  return (await own).port;
}

let template: Promise<string> | undefined;

/** A new database with the service's schema. */
export async function createServiceDatabase(): Promise<TestDatabase> {
  template ??=
    SHARED === undefined ? serverPort().then(createTemplate) : Promise.resolve(new URL(SHARED).pathname.slice(1));
  return createTestDatabase(`template ${await template}`);
}
