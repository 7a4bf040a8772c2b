import { startEmbeddedPostgres } from "../../src/platform/postgres/embedded.ts";
import { openDatabase } from "../../src/repositories/database/database.ts";

/*
 * A program that uses the embedded PostgreSQL of the folder in its first argument; see embedded-postgres.test.ts. It prints
 * what it found as one line of JSON, holds a connection, and stops everything when its standard input ends.
 */

const postgres = await startEmbeddedPostgres({ folder: process.argv[2] ?? "", log: () => undefined });
const database = openDatabase(postgres.url);
await database.sql`select`;
const { url, port, started, data } = postgres;
process.stdout.write(`${JSON.stringify({ url, port, started, data })}\n`);
for await (const _ of process.stdin);
await database.close();
await postgres.stop();
