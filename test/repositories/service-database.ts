import { after } from "node:test";
import { type Database, type DatabaseOptions, openDatabase } from "../../src/repositories/database/database.ts";
import { createServiceDatabase, createTestDatabase } from "../support/database/postgres.ts";

const opened: Database[] = [];
// Before the server stops: an ended connection would be an unhandled error.
after(async () => {
  for (const database of opened) await database.close();
});

/** A pool on a database of its own with the service's schema; closed at the end of the file. */
export async function openServiceDatabase(): Promise<Database> {
  return open((await createServiceDatabase()).url);
}

/** A pool on an empty database of its own; closed at the end of the file. */
export async function openEmptyDatabase(details = ""): Promise<Database & { url: string }> {
  const { url } = await createTestDatabase(details);
  return { ...open(url), url };
}

/** One more pool, as another process has it; closed at the end of the file. */
export function open(url: string, options: DatabaseOptions = {}): Database {
  const database = openDatabase(url, options);
  opened.push(database);
  return database;
}
