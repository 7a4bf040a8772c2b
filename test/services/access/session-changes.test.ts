import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { LISTENER, listenForSessionChanges } from "../../../src/repositories/access/session-changes.ts";
import type { Database } from "../../../src/repositories/database/database.ts";
import { createSessionChanges, type SessionChanges } from "../../../src/services/access/session-changes.ts";
import { open } from "../../repositories/service-database.ts";
import { createServiceDatabase } from "../../support/database/postgres.ts";
import { addUser, allow } from "../../support/service/users.ts";

let database: Database;
let changes: SessionChanges;
let stop: () => Promise<void>;
/** Called when the service begins to hear. */
let began: () => void = () => undefined;

before(async () => {
  const { url } = await createServiceDatabase();
  database = open(url);
  changes = createSessionChanges();
  const first = new Promise<void>((resolve) => (began = resolve));
  stop = listenForSessionChanges(url, {
    ...changes,
    began() {
      changes.began();
      began();
    },
  });
  await first;
});
after(() => stop());

/** Follows until `work` is over and `last` was told, and gives all that was told: tokens, and `all`. */
async function toldOf(last: string, work: () => Promise<unknown>): Promise<string[]> {
  const told: string[] = [];
  const ending = new AbortController();
  for await (const change of await changes.follow(ending.signal)) {
    if (change === "idle") continue;
    told.push(...(change === "all" ? ["all"] : change.tokens));
    // The first reports what was before.
    if (told.length === 1) void Promise.resolve(work());
    if (told.includes(last)) ending.abort();
  }
  return told.slice(1);
}

test("every client's change of a session or of its user's permissions is announced; a login and its use are not", async () => {
  const { sql } = database;
  const [user, other] = [await addUser(database, { roles: ["viewer"] }), await addUser(database)];
  for (const statement of [
    sql`update auth.sessions set revoked_at = now() where token_sha256 = ${user.tokenSha256}`,
    sql`update auth.sessions set revoked_at = null where token_sha256 = ${user.tokenSha256}`,
    sql`update auth.user_roles set is_active = false where user_id = ${user.userId}`,
    sql`update auth.users set is_active = false where user_id = ${user.userId}`,
    sql`delete from auth.user_roles where user_id = ${user.userId}`,
    sql`delete from auth.users where user_id = ${user.userId}`,
  ]) {
    const told = await toldOf(user.tokenSha256, async () => {
      await sql`update auth.sessions set last_seen_at = now(), idle_expires_at = idle_expires_at + interval '1 second'`;
      await sql`update auth.users set last_login_at = now() where user_id = ${other.userId}`;
      await statement;
    });
    assert.deepEqual(told, [user.tokenSha256]);
  }
});

test("what changes a role may change any session", async () => {
  const user = await addUser(database);
  const role = await allow(database, user, [{ allow: "a", can: ["view"] }]);
  for (const text of [
    "update auth.playbook_permissions set can_modify = true",
    `update auth.roles set is_active = false where name = '${role}'`,
    "insert into auth.role_permissions select role_id, 1 from auth.roles on conflict do nothing",
  ]) {
    assert.deepEqual(await toldOf("all", async () => undefined), []);
    // One commit, one word: the first `all` is that of the begin.
    const ending = new AbortController();
    const following = await changes.follow(ending.signal);
    assert.deepEqual((await following.next()).value, "all");
    const next = following.next();
    await database.sql.unsafe(text);
    let told = await next;
    while (told.value === "idle") told = await following.next();
    assert.equal(told.value, "all", text);
    ending.abort();
    assert.equal((await following.next()).done, true);
  }
});

test("a server that loses the connection announces nothing, and starts again with everything", async () => {
  const { sql } = database;
  const following = await changes.follow(new AbortController().signal);
  assert.equal((await following.next()).value, "all");
  const again = new Promise<void>((resolve) => (began = resolve));
  const version = changes.version();
  await sql`
    select pg_terminate_backend(pid) from pg_stat_activity
    where application_name = ${LISTENER} and datname = current_database()`;
  for (;;) {
    const { done } = await following.next();
    if (done === true) break;
  }
  assert.ok(changes.version() > version);
  await again;
  const user = await addUser(database);
  const told = await toldOf(user.tokenSha256, () => sql`delete from auth.sessions where user_id = ${user.userId}`);
  assert.deepEqual(told, [user.tokenSha256]);
});

test("a server that does not hear says so instead of being silent", async () => {
  const deaf = createSessionChanges();
  await assert.rejects(deaf.follow(new AbortController().signal), { code: "UNAVAILABLE" });
});

test("what a follower does not take in time is one word: all", async () => {
  const many = createSessionChanges();
  many.began();
  const following = await many.follow(new AbortController().signal);
  assert.equal((await following.next()).value, "all");
  for (let index = 0; index < 1_001; index += 1) many.changed({ tokenSha256: String(index).padStart(64, "0") });
  assert.equal((await following.next()).value, "all");
  await following.return(undefined);
});
