import { createHash, randomBytes } from "node:crypto";
import type { Database } from "../../../src/repositories/database/database.ts";

/** A user with a session. */
export interface TestUser {
  userId: number;
  email: string;
  /** The session's token, as a browser has it. */
  token: string;
  /** What the token hashes to: the value of `x-flow-session`. */
  tokenSha256: string;
}

/** What a user of a test is, where that matters. */
export interface TestUserOptions {
  /** Default: a unique one. */
  email?: string;
  /** Names of roles; default: none. */
  roles?: readonly string[];
  /** SQL of the session's ends and revocation. Defaults: in an hour, in eight hours, never. */
  idleEnd?: string;
  end?: string;
  revoked?: string;
}

let count = 0;

/** Adds a user with roles and a session, as a login would. */
export async function addUser(database: Database, options: TestUserOptions = {}): Promise<TestUser> {
  const { sql } = database;
  count += 1;
  const { email = `user-${count}@example.com`, roles = [] } = options;
  const { idleEnd = "now() + interval '1 hour'", end = "now() + interval '8 hours'", revoked = "null" } = options;
  const [user] = await sql<{ userId: number }[]>`
    insert into auth.users (email, display_name) values (${email}, ${email}) returning user_id::float8 as "userId"`;
  const userId = user?.userId ?? 0;
  await sql`
    insert into auth.user_roles (user_id, role_id)
    select ${userId}, role_id from auth.roles where name = any(${[...roles]}::text[])`;
  const token = randomBytes(32).toString("base64url");
  const tokenSha256 = createHash("sha256").update(token).digest("hex");
  await sql.unsafe(
    `insert into auth.sessions (token_sha256, user_id, idle_expires_at, expires_at, revoked_at)
     values ($1, $2, ${idleEnd}, ${end}, ${revoked})`,
    [tokenSha256, userId],
  );
  return { userId, email, token, tokenSha256 };
}

/** What the user may do with paths, beside what their other roles give: a role of their own. */
export async function allow(
  { sql }: Database,
  user: TestUser,
  rows: readonly { path?: string; allow?: string; deny?: string; can: readonly ("execute" | "view" | "modify")[] }[],
): Promise<string> {
  count += 1;
  const role = `role-${count}`;
  await sql`insert into auth.roles (name) values (${role})`;
  await sql`insert into auth.user_roles (user_id, role_id) select ${user.userId}, role_id from auth.roles where name = ${role}`;
  for (const { path = null, allow: pattern = null, deny = null, can } of rows) {
    await sql`
      insert into auth.playbook_permissions (role_id, playbook_path, allow_pattern, deny_pattern, can_execute, can_view,
        can_modify)
      select role_id, ${path}, ${pattern}, ${deny}, ${can.includes("execute")}, ${can.includes("view")},
        ${can.includes("modify")}
      from auth.roles where name = ${role}`;
  }
  return role;
}
