import assert from "node:assert/strict";
import { before, test } from "node:test";
import fc from "fast-check";
import { findSessionAccess, findUserAccess } from "../../../src/repositories/access/access.ts";
import { deleteOldSessions } from "../../../src/repositories/access/login-sessions.ts";
import type { Database } from "../../../src/repositories/database/database.ts";
import { type Page, pathFilter } from "../../../src/repositories/database/page.ts";
import { listExecutions, type ShownRow } from "../../../src/repositories/executions/execution-list.ts";
import { LOOKED_AT_MAX, MATCHED_PATHS_MAX } from "../../../src/repositories/executions/matching-executions.ts";
import {
  decideAccess,
  matchesPattern,
  type PlaybookPermission,
  pathRules,
  patternRegex,
} from "../../../src/schema/rules/access-rules.ts";
import { addUser } from "../../support/service/users.ts";
import { openServiceDatabase } from "../service-database.ts";

let database: Database;
before(async () => {
  database = await openServiceDatabase();
});

test("the database's rule of paths is the program's, in functions and in lists", async () => {
  const seed = Number(process.env["FLOW_SEED"] ?? Date.now() % 1_000_000);
  const text = fc.stringMatching(/^[ab/.*%\\+()[\]{}|^$?\n é-]{0,10}$/);
  const pairs = fc.sample(fc.tuple(text, text), { numRuns: 300, seed });
  const asked = pairs.map(([pattern, path]) => ({ pattern, path, regex: patternRegex(pattern) }));
  const rows = await database.sql<{ pattern: string; path: string; matches: boolean; listed: boolean }[]>`
    select pattern, path, auth.path_matches(pattern, path) as matches, path ~ regex as listed
    from jsonb_to_recordset(${JSON.stringify(asked)}::text::jsonb) as asked (pattern text, path text, regex text)`;
  assert.equal(rows.length, 300);
  for (const { pattern, path, matches, listed } of rows) {
    const expected = matchesPattern(pattern, path);
    const told = `seed ${seed}: ${JSON.stringify({ pattern, path })}`;
    assert.equal(matches, expected, told);
    assert.equal(listed, expected, told);
  }
});

test("a rule of many rows says what the rows say", async () => {
  const pattern = (n: number) => (n % 3 === 0 ? `a${n}/*` : n % 3 === 1 ? `a${n}/**` : null);
  const rows: PlaybookPermission[] = Array.from({ length: 40 }, (_, n) => ({
    ...{ permissionId: String(n), role: "x", canExecute: false, canView: true, canModify: false },
    playbookPath: n % 3 === 2 ? `a${n}/x` : null,
    allowPattern: pattern(n),
    denyPattern: n % 4 === 0 ? "**/x" : n % 4 === 1 ? "a1*/**" : null,
  }));
  const paths = rows.flatMap((_, n) => [`a${n}/x`, `a${n}/y`, `a${n}/y/x`]);
  const rules = pathRules(rows, "view") ?? assert.fail("everything may be seen");
  assert.equal(rules.length, 3);
  const found = await database.sql<{ path: string }[]>`
    select path from unnest(${paths}::text[]) as asked (path)
    where ${pathFilter(database.sql, database.sql`asked.path`, rules)}`;
  const expected = paths.filter((path) => decideAccess(rows, "view", path).allowed);
  assert.deepEqual(found.map(({ path }) => path).sort(), expected.toSorted());
});

test("an installation begins with four roles; users of all but admin see nothing of the system's playbooks", async () => {
  const given: Record<string, unknown> = {};
  for (const role of ["admin", "developer", "analyst", "viewer"]) {
    const user = await addUser(database, { roles: [role] });
    const access = await findSessionAccess(database, user.tokenSha256);
    const [row] = access?.playbooks ?? [];
    given[role] = [row?.allowPattern, row?.denyPattern, row?.canExecute, row?.canView, row?.canModify];
  }
  const system = "api_integration/**\nsystem/**";
  assert.deepEqual(given, {
    admin: ["**", null, true, true, true],
    developer: ["**", system, true, true, true],
    analyst: ["**", system, true, true, false],
    viewer: ["**", system, false, true, false],
  });
});

test("a user is found by id and by address, in small letters or not, while active", async () => {
  const user = await addUser(database, { email: "Found@Example.com", roles: ["viewer"] });
  assert.deepEqual((await findUserAccess(database, { email: "found@example.COM" }))?.roles, ["viewer"]);
  assert.equal((await findUserAccess(database, { userId: user.userId }))?.email, "Found@Example.com");
  await database.sql`update auth.users set is_active = false where user_id = ${user.userId}`;
  assert.equal(await findUserAccess(database, { userId: user.userId }), undefined);
});

test("sessions that were over for long are deleted, a bounded number at a time", async () => {
  for (let index = 0; index < 3; index += 1) await addUser(database, { end: "now() - interval '31 days'" });
  const live = await addUser(database);
  assert.deepEqual([await deleteOldSessions(database, 30, 2), await deleteOldSessions(database, 30, 2)], [2, 1]);
  assert.notEqual(await findSessionAccess(database, live.tokenSha256), undefined);
});

test("a list for who may see few of very many executions is read to its end in bounded pages", async () => {
  const count = LOOKED_AT_MAX + 500;
  // Every 5,000th is of the team's.
  await database.sql`
    insert into flow.execution (execution_id, catalog_id, path, version, status, last_event_id, root_execution_id)
    select n, 1, case when n % 5000 = 0 then 'team/' || n else 'other/x' end, 1, 'RUNNING', n, n
    from generate_series(1, ${count}) as n`;
  const all = { canExecute: false, canView: true, canModify: false, permissionId: "1", role: "x", playbookPath: null };
  const row: PlaybookPermission = { ...all, allowPattern: "team/*", denyPattern: "team/10*" };
  const visible = pathRules([row], "view") ?? assert.fail("everything may be seen");
  const paths: string[] = [];
  let pages = 0;
  for (let cursor: string | undefined = ""; cursor !== undefined; pages += 1) {
    const page: Page<ShownRow, string> = await listExecutions(
      database,
      { visible },
      { limit: 100, ...(cursor !== "" && { cursor }) },
    );
    paths.push(...page.items.map(({ path }) => path));
    cursor = page.next;
  }
  assert.deepEqual([paths, pages], [["team/5000"], 2]);
  assert.deepEqual((await listExecutions(database, { visible: [] }, { limit: 10 })).items, []);
  assert.equal((await listExecutions(database, {}, { limit: 10 })).items.length, 10);
});

test("executions are found by a part of their path, whether few or very many paths have it", async () => {
  const paths = Array.from({ length: MATCHED_PATHS_MAX + 1 }, (_, n) => `Shop/orders_${n}`);
  await database.sql`
    insert into flow.resource (path, kind, version, catalog_id, content_sha256)
    select p, 'playbook', 1, 1, repeat('0', 64) from unnest(${paths}::text[]) as p`;
  const first = LOOKED_AT_MAX + 1_000;
  await database.sql`
    insert into flow.execution (execution_id, catalog_id, path, version, status, last_event_id, root_execution_id)
    select ${first} + n, 1, p, 1, case when n % 2 = 0 then 'PAUSED' else 'RUNNING' end, ${first} + n, ${first} + n
    from unnest(${paths}::text[]) with ordinality as asked (p, n)`;
  const found = async (filter: Parameters<typeof listExecutions>[1], limit = 500) => {
    const { items } = await listExecutions(database, filter, { limit });
    return items.map(({ path }) => path);
  };
  // One path more than are looked for one by one, as many as that, one, and none.
  assert.deepEqual(await found({ path_contains: "sHoP/orders_" }), paths.toReversed());
  assert.deepEqual(await found({ path_contains: "orders_" }, 3), paths.slice(-3).toReversed());
  await database.sql`delete from flow.resource where path = ${paths[0] ?? ""}`;
  assert.deepEqual(await found({ path_contains: "shop/" }), paths.slice(1).toReversed());
  assert.deepEqual(await found({ path_contains: "orders_100" }), ["Shop/orders_100"]);
  // Those with an even number in this list are paused: `orders_0` is the first.
  assert.deepEqual(await found({ path_contains: "orders_10", status: ["PAUSED"] }), []);
  assert.deepEqual(await found({ path_contains: "orders_9", status: ["PAUSED"] }, 2), [
    "Shop/orders_99",
    "Shop/orders_97",
  ]);
  assert.deepEqual(await found({ path_contains: "orders\\_1" }), []);
  // A character of a pattern is a character.
  assert.deepEqual(await found({ path_contains: "o%ers" }), []);
  const page = await listExecutions(database, { path_contains: "orders_1" }, { limit: 2 });
  assert.deepEqual(
    page.items.map(({ path }) => path),
    ["Shop/orders_100", "Shop/orders_19"],
  );
  const next = await listExecutions(database, { path_contains: "orders_1" }, { limit: 2, cursor: page.next ?? "" });
  assert.deepEqual(
    next.items.map(({ path }) => path),
    ["Shop/orders_18", "Shop/orders_17"],
  );
  const row: PlaybookPermission = {
    ...{ canExecute: false, canView: true, canModify: false, permissionId: "1", role: "x", playbookPath: null },
    ...{ allowPattern: "Shop/*", denyPattern: "Shop/orders_1*" },
  };
  const visible = pathRules([row], "view") ?? assert.fail("everything may be seen");
  assert.deepEqual(await found({ path_contains: "orders_1", visible }), []);
  assert.deepEqual(await found({ path_contains: "orders_2", visible }, 1), ["Shop/orders_29"]);
});
