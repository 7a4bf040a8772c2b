import assert from "node:assert/strict";
import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { packagePath } from "../../../src/platform/system/package-file.ts";
import { migrate } from "../../../src/repositories/database/migrate.ts";
import { loadCommandBodies } from "../../../src/repositories/orchestration/claimable-commands.ts";
import { loadEvents } from "../../../src/repositories/orchestration/load-execution.ts";
import { openEmptyDatabase } from "../service-database.ts";

// What each migration does to rows that are there already.

const MIGRATIONS = packagePath("migrations");

/** A folder with some of the migrations; removed after the test. */
async function folderWith(context: TestContext, ...names: string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "flow-migrations-"));
  context.after(() => rm(folder, { recursive: true }));
  for (const name of names) await copyFile(join(MIGRATIONS, `${name}.sql`), join(folder, `${name}.sql`));
  return folder;
}

test("0001 keeps executions, events and commands that were written before it", async (context) => {
  const database = await openEmptyDatabase();
  await migrate(database, await folderWith(context, "0000_initial"));
  await database.sql.unsafe(`
    insert into flow.execution (execution_id, catalog_id, path, version, status, last_event_id, root_execution_id, result,
      ended_at) values (10, 1, 'a', 1, 'COMPLETED', 11, 10, '{"n": 1}', now());
    insert into flow.event (event_id, execution_id, catalog_id, event_type, node_id, node_name, node_type, status,
      created_at, iteration, duration_ms, result) values (11, 10, 1, 'x', 'a', 'a', 'step', 'COMPLETED',
      '2026-11-21T10:00:00.123Z', 3, 7, '{"status": "ok"}');
    insert into flow.command (command_id, execution_id, catalog_id, step, kinds, body)
      values (12, 10, 1, 'a', '{noop}', '{"step": "a"}')`);
  await migrate(database, await folderWith(context, "0000_initial", "0001_execution_store"));
  const [event] = await loadEvents(database, "10", 0, 10);
  assert.deepEqual(
    [event?.created_at, event?.["iteration"], event?.["duration_ms"], event?.["result"]],
    ["2026-11-21T10:00:00.123Z", 3, 7, { status: "ok" }],
  );
  assert.deepEqual(await loadCommandBodies(database, ["12"]), [{ step: "a" }]);
  const [execution] = await database.sql`select result, deadline_at from flow.execution`;
  assert.deepEqual([execution?.["result"], execution?.["deadline_at"]], [{ n: 1 }, null]);
});
