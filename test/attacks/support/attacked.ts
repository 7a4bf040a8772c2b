import assert from "node:assert/strict";
import type { Database } from "../../../src/repositories/database/database.ts";
import type { StoredResults } from "../../support/database/stored-results.ts";
import { ONE_STEP } from "../../support/service/api-work.ts";
import { addUser, allow, type TestUser } from "../../support/service/users.ts";
import { canaryOf, type Named } from "./inputs.ts";

/** The path of which users are members. */
export const OURS = "mine/a";
/** Below each of them something of each kind. */
export const PATHS = [OURS, "other/b", "api_integration/idp/c"] as const;

/** What is attacked, and by whom. */
export interface Attacked {
  things: ReadonlyMap<string, Named>;
  users: readonly Attacker[];
  /** What must not change: the entries, executions and results of a path, and its credential. */
  stateOf(path: string): Promise<string>;
}

/** A user, with the paths that their rows let them view, and change. */
export interface Attacker {
  who: Who;
  user: TestUser;
  views: readonly string[];
  changes: readonly string[];
}

const ALL = ["execute", "view", "modify"] as const;
const USERS = {
  "no role": { rows: [], views: [], changes: [] },
  "a member of a team": { rows: [{ allow: "mine/**", can: ALL }], views: [OURS], changes: [OURS] },
  "a viewer of a team": { rows: [{ allow: "mine/**", can: ["view"] }], views: [OURS], changes: [] },
  "one who is denied the others": {
    rows: [{ allow: "**", deny: "other/**\napi_integration/**", can: ALL }],
    views: [OURS],
    changes: [OURS],
  },
  "one whose rows reach everything": { rows: [{ allow: "**", can: ALL }], views: PATHS, changes: [OURS, "other/b"] },
} as const;

/** Kinds of user. */
export type Who = keyof typeof USERS;
export const WHO = Object.keys(USERS) as Who[];

/** Makes it all, as an operator and a worker do. `more` goes into the documents' metadata. */
export async function createAttacked(
  { work, put, refOf }: Pick<StoredResults, "work" | "put" | "refOf">,
  database: Database,
  more = "",
  paths: readonly string[] = PATHS,
): Promise<Attacked> {
  const things = new Map<string, Named>();
  for (const path of paths) {
    const trigger = `triggers: [{ name: yearly, schedule: { cron: "@yearly" }, input: { said: "${canaryOf(path)}" } }]\n`;
    await work.register(path, `${ONE_STEP}${trigger}`, `, description: "${canaryOf(path)}"${more}`);
    const resource_kind = more.includes("agent: true") ? { resource_kind: "agent" } : {};
    const id = await work.execute(path, { workload: { said: canaryOf(path) }, ...resource_kind });
    const command = (await work.claim("w", 100)).find(({ execution_id }) => execution_id === id);
    assert.ok(command !== undefined);
    assert.equal((await put(command, JSON.stringify(canaryOf(path)))).status, 200);
    const approvalId = await askFor(database, path, command);
    const { triggers } = (await work.get(`/api/triggers?path=${path}`)).body;
    const entry = await work.get(`/api/catalog/resource/${path}`);
    const credential = `of-${path.replaceAll("/", "-")}`;
    const body = { name: credential, type: "custom", data: { key: "k" }, description: canaryOf(path) };
    assert.ok((await work.post("/api/credentials", body)).status < 300);
    things.set(path, {
      path,
      catalogId: String(entry.body["catalog_id"]),
      executionId: command.execution_id,
      commandId: command.command_id,
      triggerId: String((triggers as { trigger_id: string }[])[0]?.trigger_id),
      approvalId,
      ref: refOf(command),
      credential,
      content: `apiVersion: flow/v2\nkind: Playbook\nmetadata: { name: planted, path: ${path} }\nworkflow:\n${ONE_STEP}`,
    });
  }
  const users: Attacker[] = [];
  for (const who of WHO) {
    const { rows, views, changes } = USERS[who];
    const user = await addUser(database);
    await allow(database, user, rows);
    users.push({ who, user, views, changes });
  }
  return { things, users, stateOf: (path) => stateOf(database, things.get(path) ?? assert.fail(path)) };
}

/** The row of an approval, as it is written when a command is parked. */
async function askFor(
  { sql }: Database,
  path: string,
  { execution_id: id, command_id: command }: { execution_id: string; command_id: string },
): Promise<string> {
  const [row] = await sql<{ id: string }[]>`
    insert into flow.approval (approval_id, execution_id, command_id, step, path, title, approvers, by_path, not_starter, required,
      rejections, link_login, status)
    values (${id}::bigint + 1000000, ${id}, ${command}, 'start', ${path}, ${canaryOf(path)}, '{}', true, false, 1, 1, false, 'open')
    returning approval_id as id`;
  return row?.id ?? assert.fail(path);
}

async function stateOf({ sql }: Database, { path, credential }: Named): Promise<string> {
  const [state] = await sql`
    select (select json_agg(row_to_json(c) order by c.catalog_id) from flow.catalog c where c.path = ${path}) as entries,
      (select json_agg(json_build_array(e.execution_id, e.status, (
          -- Marks of batches may follow an end.
          select max(v.event_id) from flow.event v
          where v.execution_id = e.execution_id and v.event_type not like 'batch.%'
        )) order by e.execution_id)
        from flow.execution e where e.path = ${path}) as executions,
      (select json_agg(json_build_array(r.ref, r.state) order by r.ref) from flow.result r
        join flow.execution e using (execution_id) where e.path = ${path}) as results,
      (select json_agg(json_build_array(t.trigger_id, t.enabled, t.last_fire_at, (
          select count(*) from flow.trigger_fire f where f.trigger_id = t.trigger_id)) order by t.trigger_id)
        from flow.trigger t where t.path = ${path}) as triggers,
      (select json_agg(json_build_array(a.status, (
          select count(*) from flow.approval_decision d where d.approval_id = a.approval_id)))
        from flow.approval a where a.path = ${path}) as approvals,
      (select json_agg(row_to_json(k)) from flow.credential k where k.name = ${credential}) as credentials`;
  return JSON.stringify(state);
}
