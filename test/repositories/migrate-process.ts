import { openDatabase } from "../../src/repositories/database/database.ts";
import { migrate } from "../../src/repositories/database/migrate.ts";

/* A process that migrates the database of its first argument and prints what it did; see migrate.test.ts. */

const database = openDatabase(process.argv[2] ?? "");
const done = await migrate(database);
process.stdout.write(JSON.stringify(done));
await database.close();
