import type { Database } from "../../src/repositories/database.ts";

/**
 * The schema `flow` as text, from the database's own catalog: what a reviewer wants to see of a migration's effect. One block
 * per table: kind, columns, constraints, indexes.
 */
export async function describeSchema({ sql }: Database): Promise<string> {
  const tables = await sql<{ oid: number; name: string; head: string }[]>`
    select c.oid::int as oid, relname as name,
      case when relispartition then 'partition ' || pg_get_expr(relpartbound, c.oid)
        when relkind = 'p' then 'partition by ' || pg_get_partkeydef(c.oid) else '' end
      || coalesce(' with ' || nullif(array_to_string(array(select unnest(reloptions) order by 1), ', '), ''), '') as head
    from pg_class c where relnamespace = 'flow'::regnamespace and relkind in ('r', 'p') order by relname`;
  const others = await sql<{ name: string }[]>`
    select relname as name from pg_class where relnamespace = 'flow'::regnamespace and relkind not in ('r', 'p', 'i', 'I', 't')
    union all select proname from pg_proc where pronamespace = 'flow'::regnamespace
    union all select tgname from pg_trigger t join pg_class c on c.oid = tgrelid where relnamespace = 'flow'::regnamespace`;
  if (others.length > 0) throw new Error(`say here what ${others.map(({ name }) => name).join(", ")} is`);
  const blocks: string[] = [];
  for (const { oid, name, head } of tables) {
    const lines = [...(await columns(sql, oid)), ...(await constraints(sql, oid)), ...(await indexes(sql, oid))];
    blocks.push([`table ${name} ${head.trim()}`.trimEnd(), ...lines.map((line) => `  ${line}`)].join("\n"));
  }
  return `${blocks.join("\n\n")}\n`;
}

async function columns(sql: Database["sql"], table: number): Promise<string[]> {
  const rows = await sql<{ line: string }[]>`
    select attname || ' ' || format_type(atttypid, atttypmod)
      || case when attcollation <> typcollation then ' collate ' || quote_ident(collname) else '' end
      || case when attnotnull then ' not null' else '' end
      || coalesce(' default ' || pg_get_expr(adbin, adrelid), '')
      || case when attstorage <> typstorage then ' storage ' || attstorage::text else '' end as line
    from pg_attribute
    join pg_type t on t.oid = atttypid
    left join pg_collation l on l.oid = attcollation
    left join pg_attrdef on adrelid = attrelid and adnum = attnum
    where attrelid = ${table} and attnum > 0 and not attisdropped order by attnum`;
  return rows.map(({ line }) => line);
}

/** NOT NULL stands with the columns; some server versions also list it here. */
async function constraints(sql: Database["sql"], table: number): Promise<string[]> {
  const rows = await sql<{ line: string }[]>`
    select conname || ' ' || pg_get_constraintdef(oid) as line
    from pg_constraint where conrelid = ${table} and contype <> 'n' order by contype, conname`;
  return rows.map(({ line }) => line);
}

/** Those that are not a constraint's. */
async function indexes(sql: Database["sql"], table: number): Promise<string[]> {
  const rows = await sql<{ line: string }[]>`
    select regexp_replace(pg_get_indexdef(indexrelid), '^CREATE (UNIQUE )?INDEX (\\S+) ON \\S+ USING ', '\\1INDEX \\2 ') as line
    from pg_index join pg_class c on c.oid = indexrelid
    where indrelid = ${table} and not exists (select from pg_constraint where conindid = indexrelid) order by relname`;
  return rows.map(({ line }) => line);
}
