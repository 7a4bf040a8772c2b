import type { Database } from "./database.ts";

/*
 * Leases by name, for work that one process at a time may do, such as the reaper's sweep. A lease has a token that grows with each
 * new holder: a process that finds another token has lost the lease. All times are by the database's clock.
 */

/**
 * Takes the lease if it is free or has expired, or renews it for its holder. Returns the token, or undefined while another
 * process holds it. `holder` names one process; after a restart it has another name.
 */
export async function acquireLease(
  { sql }: Database,
  name: string,
  holder: string,
  leaseMs: number,
): Promise<number | undefined> {
  const [row] = await sql<{ token: string }[]>`
    insert into flow.lease as held (name, holder, token, acquired_at, expires_at)
    values (${name}, ${holder}, 1, now(), now() + ${leaseMs}::float8 * interval '1 millisecond')
    on conflict (name) do update set
      holder = excluded.holder,
      -- The same holder goes on, unless its time was over: then nobody knows what happened meanwhile.
      token = held.token + case when held.expires_at <= now() then 1 else 0 end,
      acquired_at = case when held.expires_at <= now() then now() else held.acquired_at end,
      expires_at = excluded.expires_at
    where held.expires_at <= now() or held.holder = excluded.holder
    returning token`;
  return row && Number(row.token);
}

/** Renews the lease with this token; false if it has expired or another process holds it. */
export async function renewLease({ sql }: Database, name: string, token: number, leaseMs: number): Promise<boolean> {
  const { count } = await sql`
    update flow.lease set expires_at = now() + ${leaseMs}::float8 * interval '1 millisecond'
    where name = ${name} and token = ${token} and expires_at > now()`;
  return count > 0;
}

/** Ends the lease that this token is of, so that another process may have it at once. Any other token: nothing happens. */
export async function releaseLease({ sql }: Database, name: string, token: number): Promise<void> {
  // The row stays: the next token must differ. A lease cannot end before it began. The column has milliseconds: rounded up, the
  // end would still be in the future for a process that asks at once.
  await sql`
    update flow.lease set
      expires_at = greatest(date_trunc('milliseconds', now()), acquired_at + interval '1 millisecond')
    where name = ${name} and token = ${token} and expires_at > now()`;
}
