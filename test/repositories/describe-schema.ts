import type { Database } from "../../src/repositories/database/database.ts";

/** The service's schemas; tables of the first one stand without its name. */
const SCHEMAS = ["flow", "auth"];

/**
 * The schemas `flow` and `auth` as text, from the database's own catalog: what a reviewer wants to see of a migration's effect.
 * One block per table: kind, columns, constraints, indexes, triggers; then functions.
 */
export async function describeSchema({ sql }: Database): Promise<string> {
  const blocks: string[] = [];
  for (const schema of SCHEMAS) {
    const prefix = schema === SCHEMAS[0] ? "" : `${schema}.`;
    const tables = await sql<{ oid: number; name: string; head: string }[]>`
      select c.oid::int as oid, relname as name,
        case when relispartition then 'partition ' || pg_get_expr(relpartbound, c.oid)
          when relkind = 'p' then 'partition by ' || pg_get_partkeydef(c.oid) else '' end
        || coalesce(' with ' || nullif(array_to_string(array(select unnest(reloptions) order by 1), ', '), ''), '') as head
      from pg_class c where relnamespace = ${schema}::regnamespace and relkind in ('r', 'p') order by relname`;
    for (const { oid, name, head } of tables) {
      const inner = [
        await columns(sql, oid),
        await constraints(sql, oid),
        await indexes(sql, oid),
        await triggers(sql, oid),
      ];
      const lines = inner.flat().map((line) => `  ${line}`);
      blocks.push([`table ${prefix}${name} ${head.trim()}`.trimEnd(), ...lines].join("\n"));
    }
    blocks.push(...(await views(sql, schema, prefix)));
    blocks.push(...(await functions(sql, schema)));
    await refuseOthers(sql, schema);
  }
  return `${blocks.join("\n\n")}\n`;
}

async function views(sql: Database["sql"], schema: string, prefix: string): Promise<string[]> {
  const rows = await sql<{ oid: number; name: string; text: string }[]>`
    select oid::int, relname as name, pg_get_viewdef(oid, true) as text
    from pg_class where relnamespace = ${schema}::regnamespace and relkind = 'v' order by relname`;
  const blocks = rows.map(async ({ oid, name, text }) =>
    [`view ${prefix}${name}`, text, ...(await triggers(sql, oid)).map((line) => `  ${line}`)].join("\n"),
  );
  return await Promise.all(blocks);
}

async function functions(sql: Database["sql"], schema: string): Promise<string[]> {
  const rows = await sql<{ text: string }[]>`
    select pg_get_functiondef(oid) as text from pg_proc where pronamespace = ${schema}::regnamespace order by proname`;
  return rows.map(({ text }) => text.trimEnd());
}

/** Sequences of identity columns stand with their column. */
async function refuseOthers(sql: Database["sql"], schema: string): Promise<void> {
  const others = await sql<{ name: string }[]>`
    select relname as name from pg_class c
    where relnamespace = ${schema}::regnamespace and relkind not in ('r', 'p', 'i', 'I', 't', 'v')
      and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'i')`;
  if (others.length > 0) throw new Error(`say here what ${others.map(({ name }) => name).join(", ")} is`);
}

async function columns(sql: Database["sql"], table: number): Promise<string[]> {
  const rows = await sql<{ line: string }[]>`
    select attname || ' ' || format_type(atttypid, atttypmod)
      || case when attcollation <> typcollation then ' collate ' || quote_ident(collname) else '' end
      || case when attnotnull then ' not null' else '' end
      || case attidentity when 'a' then ' identity always' when 'd' then ' identity' else '' end
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

async function triggers(sql: Database["sql"], table: number): Promise<string[]> {
  const rows = await sql<{ line: string }[]>`
    select regexp_replace(pg_get_triggerdef(oid), '^CREATE ', '') as line
    from pg_trigger where tgrelid = ${table} and not tgisinternal order by tgname`;
  return rows.map(({ line }) => line);
}
