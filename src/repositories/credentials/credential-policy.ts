import type { ISql } from "postgres";
import type { CredentialDefault } from "../../schema/rules/credential-playbooks.ts";

/**
 * What holds in this database for credentials that do not say which playbooks may use them. The migration that made the table
 * wrote `open` where it found such a credential, and `restricted` elsewhere. Without the row: restricted.
 */
export async function readCredentialDefault(sql: ISql): Promise<CredentialDefault> {
  const [row] = await sql<{ byDefault: CredentialDefault }[]>`
    select by_default as "byDefault" from flow.credential_policy`;
  return row?.byDefault ?? "restricted";
}

/** Names of credentials that every playbook may use; `limit` at most. `unlisted`: those without a list are among them. */
export async function listOpenCredentials(sql: ISql, unlisted: boolean, limit: number): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    select name from flow.credential
    where (${unlisted} and coalesce(meta -> 'playbooks', 'null') = 'null')
      or meta -> 'playbooks' ? '**' or meta -> 'playbooks' ? '%'
    order by name limit ${limit}`;
  return rows.map(({ name }) => name);
}
