import type { ISql } from "postgres";
import { AUTH_NOTE } from "../../platform/postgres/cluster.ts";
import type { Database, Transaction } from "../database/database.ts";

/** The account of the database with which the playbooks of logins work. */
export interface AuthAccount {
  /** Name of the account: one per database, because accounts belong to the server of many. */
  name: string;
  /** SCRAM verifier of its password (`platform/crypto/scram-verifier`): the password itself would stand in the server's log. */
  verifier: string;
}

/** State of the account. `foreign`: another program made an account of that name. */
export type AccountState = "absent" | "ours" | "foreign";

/** Tables whose rows the account may change; in the audit log it may only add. */
const CHANGED = ["users", "sessions", "roles", "permissions", "role_permissions", "user_roles", "playbook_permissions"];

/** Any number: what all servers of a database lock while they look after the account ("auth" in ASCII). */
const LOCK = 0x61757468;

/** Others that look after the account wait until the transaction has ended. */
export async function lockAuthAccount({ sql }: Transaction): Promise<void> {
  await sql`select pg_advisory_xact_lock(${LOCK})`;
}

/** Name that the account of this database has: the database's own with `_auth`, as long as names may be. */
export async function authAccountName({ sql }: Transaction): Promise<string> {
  const [row] = await sql<{ name: string }[]>`select left(current_database(), 58) || '_auth' as name`;
  return row!.name;
}

/** Whether there is an account of this name, and whose. */
export async function findAuthAccount({ sql }: Transaction, name: string): Promise<AccountState> {
  const [row] = await sql<{ note: string | null }[]>`
    select shobj_description(oid, 'pg_authid') as note from pg_roles where rolname = ${name}::text::name`;
  if (row === undefined) return "absent";
  return row.note === AUTH_NOTE ? "ours" : "foreign";
}

/**
 * Makes the account, or gives it this password. It may log in and nothing else: what it may do in the database is said by
 * {@link grantAuthSchema}. Throws what the database throws, SQLSTATE 42501 above all, where the service may make no accounts.
 */
export async function writeAuthAccount(tx: Transaction, account: AuthAccount, state: AccountState): Promise<void> {
  const { ident, verifier } = await quoted(tx.sql, account);
  await tx.sql.unsafe(`${state === "absent" ? "create" : "alter"} role ${ident} login password ${verifier}`);
  if (state !== "absent") return;
  await tx.sql.unsafe(`comment on role ${ident} is '${AUTH_NOTE}'`);
  // A task that was lost must not hold a transaction open, which would keep vacuum from its work.
  await tx.sql.unsafe(`alter role ${ident} set idle_in_transaction_session_timeout = '30s'`);
}

/** Lets the account read schema `auth` and change its rows, where it cannot yet. Tables added by migrations are found. */
export async function grantAuthSchema({ sql }: Transaction, name: string): Promise<void> {
  const [row] = await sql<{ complete: boolean; ident: string; database: string }[]>`
    select quote_ident(${name}) as ident, quote_ident(current_database()) as database,
      has_schema_privilege(${name}, 'auth', 'usage') and has_database_privilege(${name}, current_database(), 'connect')
      and has_table_privilege(${name}, 'auth.audit_log', 'insert')
      and not exists (
        select from pg_class
        where relnamespace = 'auth'::regnamespace and relkind in ('r', 'p', 'v')
          and not has_table_privilege(${name}, oid, 'select')
      ) and (
        select bool_and(has_table_privilege(${name}, format('auth.%I', changed), one))
        from unnest(${CHANGED}::text[]) as changed, unnest(array['insert', 'update', 'delete']) as one
      ) as complete`;
  const { complete, ident, database } = row!;
  if (complete) return;
  await sql.unsafe(`grant connect on database ${database} to ${ident}`);
  await sql.unsafe(`grant usage on schema auth to ${ident}`);
  await sql.unsafe(`grant select on all tables in schema auth to ${ident}`);
  const changed = CHANGED.map((table) => `auth.${table}`).join(", ");
  await sql.unsafe(`grant insert, update, delete on ${changed} to ${ident}`);
  await sql.unsafe(`grant insert on auth.audit_log to ${ident}`);
}

/** Statements that make accounts take no parameters. */
async function quoted(sql: ISql, { name, verifier }: AuthAccount): Promise<{ ident: string; verifier: string }> {
  const [row] = await sql<{ ident: string; verifier: string }[]>`
    select quote_ident(${name}) as ident, quote_literal(${verifier}) as verifier`;
  return row!;
}

/** True when the database refused because the service's own account lacks a right. */
export function lacksRight(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "42501";
}

/**
 * Makes these users administrators: an unknown address becomes a user without a login. A user who had the role and lost it does
 * not get it back. `issuer` alone may vouch for an unknown address. Returns the addresses that became administrators now.
 */
export async function enterAdministrators(
  { sql }: Database,
  emails: readonly string[],
  issuer: string | undefined,
): Promise<string[]> {
  if (emails.length === 0) return [];
  const addresses = [...emails];
  await sql`
    insert into auth.users (email, display_name, issuer)
    select email, email, ${issuer ?? null}::text from unnest(${addresses}::text[]) as email
    on conflict do nothing`;
  const rows = await sql<{ email: string }[]>`
    with entered as (
      insert into auth.user_roles (user_id, role_id)
      select u.user_id, r.role_id from auth.users u, auth.roles r
      where lower(u.email) = any (${addresses}::text[]) and r.name = 'admin'
      on conflict do nothing
      returning user_id
    ), told as (
      insert into auth.audit_log (actor_kind, action, resource, rule, result, detail)
      select 'system', 'role.grant', 'user/' || user_id, 'FLOW_ADMIN_EMAILS', 'allow', '{"role": "admin"}'::jsonb
      from entered
    )
    select email from auth.users join entered using (user_id) order by email`;
  return rows.map(({ email }) => email);
}
