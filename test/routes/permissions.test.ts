import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { before, test } from "node:test";
import { PERMISSIONS_PAGE, type PermissionRow, readPermissions, type Verdict } from "../../docs/permissions.ts";
import { type Body, openApi, playbook, posted, TOKENS } from "../support/service/api.ts";
import { addUser, type TestUserOptions } from "../support/service/users.ts";

// Every call of docs/permissions.md, made: each route by each role and each kind of token and session.

const PATHS = { own: "team/a", system: "api_integration/idp/login" };
/** Bodies that name a path where the handler asks. */
const BODIES: Readonly<Record<string, (path: string) => Body>> = {
  "POST /api/execute": (path) => ({ path }),
  "POST /api/catalog/register": (path) => ({ content: documentOf(path) }),
  "POST /api/execute/draft": (path) => ({ content: documentOf(path) }),
  "POST /api/execute/draft/step": (path) => ({ content: documentOf(path), step: "start" }),
  "POST /api/execute/preview": (path) => ({ path }),
  "POST /api/mcp/mcp/:resource_path{.+}/call": () => ({ method: "health" }),
  "POST /api/mcp/call": (path) => ({ resource: path, method: "health" }),
};
const documentOf = (path: string) => `${playbook(path)}triggers: [{ name: asked, signal: { name: go } }]\n`;
const ROWS = readPermissions(readFileSync(PERMISSIONS_PAGE, "utf8"));
const NOBODY = "anonymous";

/** Who calls: the column that tells what they may, and what they send. Users are added to it before the tests. */
const callers: { who: string; column: string; headers: Record<string, string> }[] = [
  { who: "nobody", column: "no token", headers: {} },
  { who: "a token of nobody", column: "no token", headers: { authorization: `Bearer ${TOKENS.operator}x` } },
  { who: "a worker", column: "worker", headers: { authorization: `Bearer ${TOKENS.worker}` } },
  { who: "an operator", column: "operator", headers: { authorization: `Bearer ${TOKENS.operator}` } },
];
const OVER: readonly (readonly [string, TestUserOptions])[] = [
  ["revoked", { revoked: "now()" }],
  ["past its end", { end: "now() - interval '1 second'" }],
  ["past its idle end", { idleEnd: "now() - interval '1 second'" }],
];

const api = await openApi();
const catalogIds: Record<string, string> = {};
const triggerIds: Record<string, string> = {};
/** Roles of the users who call, by user id. */
const roleOf = new Map<number, string>();
before(async () => {
  const { database } = api;
  const session = (tokenSha256: string, token = TOKENS.operator) => ({
    authorization: `Bearer ${token}`,
    "x-flow-session": tokenSha256,
  });
  for (const role of ["admin", "developer", "analyst", "viewer", "no role"]) {
    const { userId, tokenSha256 } = await addUser(database, { roles: role === "no role" ? [] : [role] });
    roleOf.set(userId, role);
    callers.push({ who: role, column: role, headers: session(tokenSha256) });
  }
  for (const [what, options] of OVER) {
    const { tokenSha256 } = await addUser(database, { ...options, roles: ["admin"] });
    callers.push({ who: `a session ${what}`, column: "session over", headers: session(tokenSha256) });
  }
  const gone = await addUser(database, { roles: ["admin"] });
  await database.sql`update auth.users set is_active = false where user_id = ${gone.userId}`;
  const admin = await addUser(database, { roles: ["admin"] });
  callers.push(
    { who: "a user who was switched off", column: "session over", headers: session(gone.tokenSha256) },
    { who: "a session that never was", column: "session over", headers: session("0".repeat(64)) },
    { who: "a session that is none", column: "session over", headers: session("' or 1=1 --") },
    { who: "an admin by a worker's token", column: "by a worker", headers: session(admin.tokenSha256, TOKENS.worker) },
    { who: "an admin by no token", column: "no token", headers: { "x-flow-session": admin.tokenSha256 } },
  );
  for (const path of Object.values(PATHS)) {
    catalogIds[path] = String((await operate("/api/catalog/register", { content: documentOf(path) }))["catalog_id"]);
    const { items } = await api.service.triggers.list({ path }, { limit: 1 });
    triggerIds[path] = items[0]?.triggerId ?? "";
  }
});

async function operate(path: string, body: Body): Promise<Body> {
  const response = await api.guarded.request(path, posted(body, { authorization: `Bearer ${TOKENS.operator}` }));
  assert.equal(response.status, 200, await response.clone().text());
  return (await response.json()) as Body;
}

/** A request for the route about something that is there, or, where nothing of users is asked by it, about nothing. */
async function requestOf({ route, isSystem }: PermissionRow) {
  const [method = "", pattern = ""] = route.split(" ");
  const path = isSystem ? PATHS.system : PATHS.own;
  // An execution of its own: a call may end or delete it.
  const needsExecution = pattern.includes(":execution_id") || pattern.endsWith("/results/resolve");
  const id = needsExecution ? String((await operate("/api/execute", { path }))["execution_id"]) : "";
  const address = pattern
    .replace(/:(resource_)?path\{\.\+\}/, path)
    .replace(":catalog_id", catalogIds[path] ?? "")
    .replace(":execution_id", id)
    .replace(":trigger_id", triggerIds[path] ?? "")
    .replaceAll(/:\w+/g, "999999999");
  const query = new URLSearchParams({ ref: `noetl://execution/${id}/step/a/task/b/run/1` });
  return (headers: Record<string, string>) => {
    if (method === "GET") return api.guarded.request(`${address}?${query}`, { headers });
    if (method === "DELETE") return api.guarded.request(address, { method, headers });
    return api.guarded.request(address, { ...posted(BODIES[route]?.(path) ?? {}, headers), method });
  };
}

function expected({ verdicts }: PermissionRow, column: string): Verdict {
  // With nothing but its token.
  if (verdicts[column] === "claim") return "403";
  // Refused whatever the user may; what is open to everybody asks for no session.
  if (column === "by a worker") return verdicts["no token"] === "yes" ? "yes" : "403";
  return verdicts[column] ?? "401";
}

test("each route is open to exactly those whom the table names, and each refusal of a user is in the audit log", async () => {
  assert.ok(ROWS.length > 80, `${ROWS.length} rows`);
  for (const row of ROWS) {
    const send = await requestOf(row);
    const refused: string[] = [];
    for (const { who, column, headers } of callers) {
      const response = await send(headers);
      await response.body?.cancel();
      const { status } = response;
      const told = `${who}: ${row.route}${row.isSystem ? " of the system" : ""} gave ${status}`;
      const verdict = expected(row, column);
      if (verdict === "yes") assert.ok(![401, 403, 500].includes(status), told);
      else assert.equal(String(status), verdict, told);
      const requestId = response.headers.get("x-request-id");
      if (status === 403 && [...roleOf.values()].includes(column)) refused.push(String(requestId));
    }
    // More refusals than this in a second would be counted in one row.
    await api.service.audit.close();
    const rows = await api.database.sql<{ result: string; actorKind: string }[]>`
      select distinct request_id, result, actor_kind as "actorKind" from auth.audit_log
      where request_id::text = any(${refused}::text[])`;
    assert.equal(rows.length, refused.length, `${row.route}: refusals that are in the audit log`);
    for (const { result, actorKind } of rows) assert.deepEqual([result, actorKind], ["deny", "user"], row.route);
  }
});

test("what was allowed is in the audit log: to whom, what, on which playbook", async () => {
  const rows = await api.database.sql<{ userId: number; told: string }[]>`
    select distinct user_id::float8 as "userId", action || ' ' || resource as told from auth.audit_log
    where result = 'allow' and action like 'playbook.%' and user_id = any(${[...roleOf.keys()]})`;
  const of = (role: string) => rows.filter(({ userId }) => roleOf.get(userId) === role).map(({ told }) => told);
  const actions = ["execute", "modify", "pause", "resume", "view"];
  const all = (path: string) => actions.map((action) => `playbook.${action} playbook/${path}`);
  const [execute, , , , view] = all(PATHS.own);
  assert.deepEqual(of("admin").sort(), [...all(PATHS.own), ...all(PATHS.system)].sort());
  assert.deepEqual(of("developer").sort(), all(PATHS.own));
  assert.deepEqual(of("analyst").sort(), [execute, view]);
  assert.deepEqual(of("viewer"), [view]);
  assert.deepEqual(of("no role"), []);
  const [{ count } = { count: 0 }] = await api.database.sql<{ count: number }[]>`
    select count(*)::int as count from auth.audit_log where actor_kind = ${NOBODY} and result = 'allow'`;
  assert.equal(count, 0);
});

test("lists have what a role may see, and nothing of the rest", async () => {
  await operate("/api/execute", { path: PATHS.own });
  await operate("/api/execute", { path: PATHS.system });
  for (const [role, seen] of [
    ["admin", [PATHS.system, PATHS.own]],
    ["viewer", [PATHS.own]],
    ["no role", []],
  ] as const) {
    const headers = callers.find(({ who }) => who === role)?.headers ?? {};
    for (const [address, key] of [
      ["/api/catalog", "resources"],
      ["/api/executions", "executions"],
    ] as const) {
      const answer = (await (await api.guarded.request(address, { headers })).json()) as Body;
      const paths = (answer[key] as Body[]).map((item) => String(item["path"]));
      assert.deepEqual([...new Set(paths)].sort(), [...seen].sort(), `${role} ${address}`);
    }
  }
});
