import assert from "node:assert/strict";
import { before, test } from "node:test";
import type { Database } from "../../../src/repositories/database/database.ts";
import {
  LOOKED_AT_MAX,
  LOOKED_INTO_MAX,
  matchingExecutions,
} from "../../../src/repositories/executions/matching-executions.ts";
import { openServiceDatabase } from "../service-database.ts";

let database: Database;
type Filter = Parameters<typeof matchingExecutions>[1];

/** As many executions as are looked at for one page and a half. Of every thousand one is another one, from 1 to 15. */
const COUNT = LOOKED_AT_MAX * 1.5;
before(async () => {
  database = await openServiceDatabase();
  const { sql } = database;
  await sql`
    insert into flow.execution (execution_id, catalog_id, path, version, status, last_event_id, parent_execution_id, root_execution_id,
      started_by, started_kind, started_id, started_at, ended_at, error)
    select n, 1, case when n % 1000 = 7 then 'rare/a' else 'often/b' end, case when n % 1000 = 8 then 2 else 1 end,
      case when n % 1000 in (1, 9) then 'FAILED' when n % 1000 = 10 then 'RUNNING' else 'COMPLETED' end, n + 1,
      case when n % 2 = 0 then 1 end, case when n % 2 = 0 then 1 else n end, case when n % 1000 = 11 then 5 end,
      case when n % 1000 = 12 then 'trigger' when n % 1000 = 13 then 'mcp' end, case when n % 1000 = 12 then 77 end,
      now(), case when n % 1000 <> 10 then now() end,
      case n % 1000 when 1 then '{"code":"E_ONE","step":"load"}' when 9 then '{"code":"E_ONE","message":"\\u0000","step":"load"}' end::json
    from generate_series(1, ${COUNT}) as n`;
  await sql`insert into flow.resource (path, kind, version, catalog_id, content_sha256)
    select p, 'playbook', 1, 1, repeat('0', 64) from unnest(array['rare/a', 'often/b']) as p`;
  await sql`insert into flow.execution_label (execution_id, name, value)
    select n, l, 'x' from generate_series(1, ${COUNT}) as n, unnest(array['all', 'few']) as l where l = 'all' or n % 1000 = 3`;
  const body = (n: string) =>
    `[{"event_id":1,"type":"playbook.initialized","workload":{"day":"d${n}","deep":{"n":${n}}}}]`;
  for (let n = 1; n <= 1_500; n += 1) {
    if (n % 1000 !== 4 && n % 1000 !== 5) continue;
    await sql`insert into flow.event_log (event_id, execution_id, catalog_id, node_id, events, body)
      values (${n + 1}, ${n}, 1, 'often/b', 1, ${body(String(n))})`;
  }
  await sql`insert into flow.event_log (event_id, execution_id, catalog_id, event_type, node_id, node_name, node_type, status, meta)
    values (7, 6, 1, 'playbook.initialized', 'p', 'p', 'playbook', 'RUNNING', '{"workload":{"day":"\\u0000"}}'),
      (15, 14, 1, 'playbook.initialized', 'p', 'p', 'playbook', 'RUNNING', '{"workload":{"day":"single"}}')`;
  await sql`insert into flow.command (command_id, execution_id, catalog_id, step, kinds, body)
    values (9000001, 1010, 1, 'load', '{}', '{}')`;
  await sql`analyze`;
});

/** All that are found, and by how many pages. */
async function found(filter: Filter, limit = 500): Promise<{ ids: number[]; pages: number }> {
  const ids: string[] = [];
  let pages = 0;
  for (let cursor: string | undefined = ""; cursor !== undefined; pages += 1) {
    const page: { items: string[]; next?: string } = await matchingExecutions(database, filter, {
      limit,
      ...(cursor !== "" && { cursor }),
    });
    ids.push(...page.items);
    cursor = page.next;
  }
  return { ids: ids.map(Number), pages };
}

const everyThousand = (rest: number) => Array.from({ length: COUNT / 1_000 }, (_, n) => (14 - n) * 1_000 + rest);

test("what an index knows is found at once, and in pages that neither repeat nor leave out", async () => {
  assert.deepEqual(await found({ labels: { few: "x" } }), { ids: everyThousand(3), pages: 1 });
  assert.deepEqual(await found({ labels: { few: "x" } }, 4), { ids: everyThousand(3), pages: 4 });
  assert.deepEqual((await found({ path: "rare/*" })).ids, everyThousand(7));
  assert.deepEqual((await found({ path: "rare/a", labels: { all: "x" } })).ids, everyThousand(7));
  assert.deepEqual((await found({ started_by: "trigger" })).ids, everyThousand(12));
  assert.deepEqual(await found({ started_by: "trigger", started_by_id: "77" }), { ids: everyThousand(12), pages: 1 });
  assert.deepEqual((await found({ started_by: "trigger", started_by_id: "78" })).ids, []);
  assert.deepEqual((await found({ started_by: "mcp" })).ids, everyThousand(13));
  assert.deepEqual((await found({ labels: { few: "y" } })).ids, []);
  assert.deepEqual((await found({ path: "none/*" })).ids, []);
});

test("an error is found by its code and its step; one that the database cannot read is left out", async () => {
  assert.deepEqual((await found({ error_code: "E_ONE" })).ids, everyThousand(1));
  assert.deepEqual((await found({ error_code: "E_ONE", status: ["FAILED", "RUNNING"] })).ids, everyThousand(1));
  assert.deepEqual((await found({ error_code: "E_ONE", status: ["RUNNING"] })).ids, []);
  assert.deepEqual(
    (await found({ step: "load" })).ids.sort((a, b) => a - b),
    [...everyThousand(1), 1010].sort((a, b) => a - b),
  );
  assert.deepEqual((await found({ step: "load", status: ["RUNNING"] })).ids, [1010]);
});

test("what no index knows is looked for in bounded pages, to the end", async () => {
  assert.deepEqual(await found({ version: 2 }), { ids: everyThousand(8), pages: 2 });
  assert.deepEqual(await found({ version: 2, path: "often/*" }), { ids: everyThousand(8), pages: 2 });
  assert.deepEqual((await found({ version: 2, path: "rare/a" })).ids, []);
  assert.deepEqual(await found({ labels: { all: "x", few: "x" } }), { ids: everyThousand(3), pages: 2 });
  assert.deepEqual((await found({ started_by: "user", started_by_id: "5" })).ids, everyThousand(11));
  assert.deepEqual((await found({ started_by_id: "77" })).ids, everyThousand(12));
  assert.equal((await found({ started_by: "execution" })).ids.length, COUNT / 2 - 15, "without those of triggers");
  assert.equal((await found({ roots_only: true })).ids.length, COUNT / 2);
  assert.equal(
    (await found({ started_by: "execution", started_by_id: "1", parent_execution_id: "1" })).ids.length,
    COUNT / 2 - 15,
  );
});

test("inputs are read from the first event, fewer executions at a time", async () => {
  const range = { id_prefix: "1" };
  assert.deepEqual((await found({ input: { day: "d1004" } })).ids, [1004]);
  const { pages } = await found({ input: { "deep.n": "5" } });
  assert.equal(pages, COUNT / LOOKED_INTO_MAX + 1);
  assert.deepEqual((await found({ input: { "deep.n": "5", day: "d5" } })).ids, [5]);
  assert.deepEqual((await found({ input: { "deep.n": "5", day: "d4" } })).ids, []);
  assert.deepEqual((await found({ input: { day: "single" } })).ids, [14]);
  assert.deepEqual((await found({ ...range, input: { none: "" } })).ids, []);
});

test("only what the caller may see is found, by an exact path too", async () => {
  const visible = [{ exact: [], allow: "^rare/.*$", deny: null }];
  assert.deepEqual((await found({ visible })).ids, everyThousand(7));
  assert.deepEqual((await found({ visible, path: "rare/a" })).ids, everyThousand(7));
  assert.deepEqual((await found({ visible, path: "often/b" })).ids, []);
  assert.deepEqual((await found({ visible, path: "often/*" })).ids, []);
  assert.deepEqual((await found({ visible, labels: { few: "x" } })).ids, []);
  assert.deepEqual((await found({ visible: [], labels: { few: "x" } })).ids, []);
});
