import type { JsonObject } from "../../schema/words/json.ts";
import { failed } from "../../schema/words/outcome.ts";
import type { Credential } from "../contract/tool.ts";
import { cancellable } from "../sql/cancel.ts";
import { readSqlConnection } from "../sql/connection.ts";
import { sqlFailure } from "../sql/errors.ts";
import type { SqlPools } from "../sql/pool.ts";
import { openOrFail } from "./from-postgres.ts";
import { type ColumnPair, keyPairs, pairColumns, type RowBatch, type RowTarget, transferFailure } from "./rows.ts";
import { quoteName, type TransferTask, tableParts } from "./task.ts";

/**
 * A table of PostgreSQL, written in one transaction: a batch is one statement whose only parameter is the batch as JSON,
 * which the server reads by the types of the table's columns. Throws a `transferFailure`, FlowError, or the signal's
 * reason.
 */
export async function postgresTarget(
  task: TransferTask,
  auth: Readonly<Record<string, Credential>>,
  pools: SqlPools,
  signal: AbortSignal,
): Promise<RowTarget> {
  const { config, table: written, mapping } = task.target;
  const connection = readSqlConnection(config, auth);
  const target = `${connection.user}@${connection.host}:${connection.port}/${connection.database}`;
  const table = tableParts(written).map(quoteName).join(".");
  const place = {
    statement: { text: "", line: 1, placeholders: 0, keyword: "" },
    number: 1,
    count: 1,
    what: `Writing to table ${written}`,
  };
  const session = await openOrFail(pools, connection, target, signal);
  let reusable = true;
  const run = async (text: string, params: string[] = []) => {
    try {
      return await cancellable(signal, session, session.sql.unsafe(text, params).execute());
    } catch (error) {
      reusable = !signal.aborted;
      signal.throwIfAborted();
      throw transferFailure(sqlFailure(target, error, place));
    }
  };
  const close = async () => {
    // Resetting a session ends a transaction that is open.
    pools.release(session, reusable);
  };
  try {
    const columns = await tableColumns(table, written, run);
    await run("begin");
    if (task.mode === "replace") await run(`delete from ${table}`);
    if (task.mode === "truncate") await run(`truncate table ${table}`);
    const statements = new Map<string, string>();
    return {
      async write({ rows, columns: fields }: RowBatch) {
        const key = fields.join("\0");
        let text = statements.get(key);
        if (text === undefined) {
          text = insertText(table, pairColumns(fields, mapping, [...columns.keys()], written), columns, task);
          statements.set(key, text);
        }
        return (await run(text, [`[${rows.join(",")}]`])).count;
      },
      async commit() {
        await run("commit");
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Types by column, in the table's order. Generated columns cannot be written. */
async function tableColumns(
  table: string,
  written: string,
  run: (text: string, params?: string[]) => Promise<readonly JsonObject[]>,
): Promise<Map<string, string>> {
  const rows = await run(
    `select a.attname as name, pg_catalog.format_type(a.atttypid, a.atttypmod) as type from pg_catalog.pg_attribute a
     where a.attrelid = pg_catalog.to_regclass($1) and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
     order by a.attnum`,
    [table],
  );
  if (rows.length > 0) return new Map(rows.map(({ name, type }) => [String(name), String(type)]));
  const message = `The target has no table ${written}: create it first, for example with a sqldb task before this one.`;
  throw transferFailure({ ...failed("db_error", "42P01", message), pg: { code: "42P01", sqlstate: "42P01" } });
}

/**
 * The statement that writes a batch. The server reads each field as the type of its column, so that texts, numbers, lists
 * and maps become what the column holds; bytes come as base64, or as PostgreSQL's own text.
 */
function insertText(
  table: string,
  pairs: readonly ColumnPair[],
  types: ReadonlyMap<string, string>,
  { mode, key }: TransferTask,
): string {
  const fields = new Map<string, string>();
  for (const { target, source } of pairs) if (!fields.has(source)) fields.set(source, types.get(target)!);
  const columns = pairs.map(({ target }) => quoteName(target)).join(", ");
  const values = pairs
    .map(({ target, source }) => valueText(source, fields.get(source)!, types.get(target)!))
    .join(", ");
  const record = [...fields].map(([name, type]) => `${quoteName(name)} ${type === "bytea" ? "text" : type}`).join(", ");
  const rows = `pg_catalog.json_to_recordset($1::json) as`;
  if (mode !== "upsert") return `insert into ${table} (${columns}) select ${values} from ${rows} r(${record})`;
  const keys = keyPairs(key, pairs);
  const keyNames = keys.map(({ target }) => quoteName(target));
  const keyFields = keys.map(({ source }) => `r.${quoteName(source)}`).join(", ");
  const others = pairs.map(({ target }) => quoteName(target)).filter((name) => !keyNames.includes(name));
  const update = others.map((name) => `${name} = excluded.${name}`).join(", ");
  const names = [...[...fields.keys()].map(quoteName), POSITION].join(", ");
  // Of rows with one key in a batch the last counts: the server refuses to change a row twice in one statement.
  return (
    `insert into ${table} (${columns}) select ${values} from (select distinct on (${keyFields}) r.* ` +
    `from rows from (${rows} (${record})) with ordinality as r(${names}) order by ${keyFields}, r.${POSITION} desc) r ` +
    `on conflict (${keyNames.join(", ")}) do ${update === "" ? "nothing" : `update set ${update}`}`
  );
}

/** Name of a row's place in its batch: no field is called so. */
const POSITION = '"flow: position"';

function valueText(field: string, read: string, type: string): string {
  const name = `r.${quoteName(field)}`;
  if (type === "bytea") {
    return `case when ${name} like '\\\\x%' then ${name}::bytea else pg_catalog.decode(${name}, 'base64') end`;
  }
  return read === type ? name : `${name}::${type}`;
}
