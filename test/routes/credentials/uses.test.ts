import assert from "node:assert/strict";
import { test } from "node:test";
import { type Body, openApi, posted } from "../../support/service/api.ts";
import { addUser } from "../../support/service/users.ts";

const api = await openApi();

async function get(path: string, headers: Record<string, string> = {}): Promise<{ status: number; body: Body }> {
  const response = await api.open.request(path, { headers });
  return { status: response.status, body: (await response.json()) as Body };
}

async function register(path: string, auth: string): Promise<Body> {
  const content = `apiVersion: flow/v2
kind: Playbook
metadata: { name: n, path: ${JSON.stringify(path)}, description: "speaks of pg_uses" }
workflow:
  - step: start
    tool: { kind: sqldb, auth: ${JSON.stringify(auth)}, command: select 1 }
`;
  const response = await api.open.request("/api/catalog/register", posted({ content }));
  assert.equal(response.status, 200, await response.clone().text());
  return (await response.json()) as Body;
}

const usesOf = (name: string) => `/api/credentials/${encodeURIComponent(name)}/uses`;
const paths = (body: Body) => (body["items"] as Body[]).map(({ path }) => path);

test("uses of a credential are those of the newest versions, with their places", async () => {
  await register("uses/once", "pg_uses");
  await register("uses/once", "another");
  await register("uses/still", "another");
  const { catalog_id } = await register("uses/still", "pg_uses");
  const { status, body } = await get(usesOf("pg_uses"));
  assert.equal(status, 200);
  assert.deepEqual(body, {
    items: [
      {
        path: "uses/still",
        version: 2,
        kind: "playbook",
        catalog_id,
        places: [{ place: "workflow[0].tool.auth", by_default: false }],
      },
    ],
    hidden: 0,
    next_cursor: null,
  });
});

test("an unused name, a part of another name and an impossible name have no uses", async () => {
  await register("uses/longer", "pg_uses_longer");
  for (const name of ["nowhere", "pg_use", "a\u0000b"]) {
    const { status, body } = await get(usesOf(name));
    assert.deepEqual([status, body], [200, { items: [], hidden: 0, next_cursor: null }], name);
  }
  const { status } = await get(`${usesOf("nowhere")}?cursor=nonsense`);
  assert.equal(status, 422);
});

test("names with quotes, per cents, slashes and letters of all kinds are found as they are", async () => {
  for (const [index, name] of ['a"b', "50%", "a/b", "ключ", "a\\b", "it's", "é\u{1f511}"].entries()) {
    await register(`uses/odd/${index}`, name);
    assert.deepEqual(paths((await get(usesOf(name))).body), [`uses/odd/${index}`], name);
  }
});

test("pages join without gap or repeat", async () => {
  for (const index of [0, 1, 2, 3, 4]) await register(`uses/paged/${index}`, "pg_paged");
  const found: unknown[] = [];
  let cursor = "";
  for (let page = 0; page < 9; page += 1) {
    const { body } = await get(`${usesOf("pg_paged")}?limit=2${cursor === "" ? "" : `&cursor=${cursor}`}`);
    found.push(...paths(body));
    if (body["next_cursor"] === null) break;
    cursor = String(body["next_cursor"]);
  }
  assert.deepEqual(
    found,
    [0, 1, 2, 3, 4].map((index) => `uses/paged/${index}`),
  );
});

test("a manager of credentials who may not view a playbook sees that there is one more use", async () => {
  const { sql } = api.database;
  const [role] = await sql<{ roleId: string }[]>`
    insert into auth.roles (name) values ('keeper') returning role_id as "roleId"`;
  await sql`insert into auth.role_permissions (role_id, permission_id)
    select ${role?.roleId ?? ""}, permission_id from auth.permissions where name = 'manage_credentials'`;
  const { tokenSha256 } = await addUser(api.database, { roles: ["keeper"] });
  await register("uses/secretive", "pg_secretive");
  const { status, body } = await get(usesOf("pg_secretive"), { "x-flow-session": tokenSha256 });
  assert.deepEqual([status, body], [200, { items: [], hidden: 1, next_cursor: null }]);
});
