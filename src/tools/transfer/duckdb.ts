import type { DuckDBPreparedStatement } from "@duckdb/node-api";
import { FlowError } from "../../schema/words/errors.ts";
import { type JsonObject, own } from "../../schema/words/json.ts";
import type { DuckdbDatabases, DuckdbLease } from "../duckdb/databases.ts";
import { duckdbFailure } from "../duckdb/errors.ts";
import { bindParameters, interruptible } from "../duckdb/run.ts";
import { duplicateColumn, QUERY, ROW, readSourceQuery } from "./from-postgres.ts";
import {
  type ColumnPair,
  keyPairs,
  pairColumns,
  RowCollector,
  type RowSource,
  type RowTarget,
  transferFailure,
} from "./rows.ts";
import { quoteName, quoteText, type TransferTask, tableParts } from "./task.ts";

/** The caller of a database, and the deadline. */
export interface DuckdbCaller {
  databases: DuckdbDatabases;
  executionId: string;
  signal: AbortSignal;
}

/** Rows of a query in DuckDB, which writes each as JSON itself. Throws FlowError `INVALID_INPUT`. */
export function duckdbSource(config: JsonObject, caller: DuckdbCaller): RowSource {
  const { statement, params } = readSourceQuery("duckdb", config);
  const { signal } = caller;
  return {
    async *batches(limits) {
      const loan = await lend(caller, config);
      const failing = <T>(work: () => Promise<T>) => judged(loan, signal, "The source's query", work);
      try {
        const columns = await failing(async () =>
          columnsOf(await loan.turn(() => loan.connection.prepare(statement.text), signal)),
        );
        const names = columns.map(({ name }) => name);
        const twice = names.find((name, index) => names.indexOf(name) !== index);
        if (twice !== undefined) throw transferFailure(duplicateColumn(twice));
        const result = await failing(async () => {
          const prepared = await loan.turn(() => loan.connection.prepare(rowQuery(statement.text, columns)), signal);
          bindParameters(loan, prepared, params);
          return await loan.turn(() => prepared.stream(), signal);
        });
        const collector = new RowCollector(limits);
        for (;;) {
          const chunk = await failing(() => loan.turn(() => result.fetchChunk(), signal));
          if (chunk === null || chunk.rowCount === 0) break;
          for (const row of chunk.getColumnValues(0)) {
            if (collector.add(String(row))) yield { rows: collector.take(), columns: names };
          }
        }
        const rest = collector.take();
        if (rest.length > 0) yield { rows: rest, columns: names };
      } finally {
        loan.release();
      }
    },
  };
}

/** A table of DuckDB, written in one transaction. Throws as the target in PostgreSQL. */
export async function duckdbTarget(task: TransferTask, caller: DuckdbCaller): Promise<RowTarget> {
  const { config, table: written, mapping } = task.target;
  const { signal } = caller;
  const table = tableParts(written).map(quoteName).join(".");
  const loan = await lend(caller, config);
  const failing = <T>(work: () => Promise<T>) => judged(loan, signal, `Writing to table ${written}`, work);
  const run = (text: string) => failing(() => loan.turn(() => loan.connection.run(text), signal));
  const close = async () => {
    // A transaction that is open ends with its connection.
    loan.release();
  };
  try {
    const described = await run(`describe ${table}`);
    const types = new Map((await described.getRows()).map(([name, type]) => [String(name), String(type)]));
    await run("begin transaction");
    if (task.mode === "replace" || task.mode === "truncate") await run(`delete from ${table}`);
    const statements = new Map<string, DuckDBPreparedStatement>();
    return {
      async write({ rows, columns: fields }) {
        const key = fields.join("\0");
        let prepared = statements.get(key);
        if (prepared === undefined) {
          const text = insertText(table, pairColumns(fields, mapping, [...types.keys()], written), types, task);
          prepared = await failing(() => loan.turn(() => loan.connection.prepare(text), signal));
          statements.set(key, prepared);
        }
        const statement = prepared;
        statement.bindVarchar(1, `[${rows.join(",")}]`);
        return (await failing(() => loan.turn(() => statement.run(), signal))).rowsChanged;
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

async function lend({ databases, executionId }: DuckdbCaller, config: JsonObject): Promise<DuckdbLease> {
  const database = own(config, "database");
  try {
    return await databases.lend(executionId, typeof database === "string" && database !== "" ? database : undefined);
  } catch (error) {
    if (error instanceof FlowError) throw error;
    throw transferFailure(duckdbFailure(error, { what: "Opening the DuckDB database", isNew: false }));
  }
}

/** Does the work; what the driver throws becomes a `transferFailure`, an abort its reason. */
async function judged<T>(loan: DuckdbLease, signal: AbortSignal, what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await interruptible(loan, signal, work);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof FlowError || (error instanceof Error && Object.hasOwn(error, "result"))) throw error;
    throw transferFailure(duckdbFailure(error, { what, isNew: loan.isNew }));
  }
}

interface Column {
  name: string;
  type: string;
}

function columnsOf(prepared: DuckDBPreparedStatement): Column[] {
  const columns = Array.from({ length: prepared.columnCount }, (_, index) => ({
    name: prepared.columnName(index),
    type: String(prepared.columnType(index)),
  }));
  prepared.destroySync();
  return columns;
}

/** Each row as the text of a JSON object: wide numbers as text with all digits, blobs as base64, NaN and infinity as text. */
function rowQuery(text: string, columns: readonly Column[]): string {
  const fields = columns.map(({ name, type }) => {
    const column = `${QUERY}.${quoteName(name)}`;
    return `${fieldText(column, type)} as ${quoteName(name)}`;
  });
  return `select to_json(${ROW})::varchar from (select ${fields.join(", ")} from (${text}\n) ${QUERY}) ${ROW}`;
}

function fieldText(column: string, type: string): string {
  if (/^(DECIMAL|HUGEINT|UHUGEINT|BIGNUM)/.test(type) && !type.endsWith("]")) return `${column}::varchar`;
  if (type === "BLOB") return `to_base64(${column})`;
  if (type === "FLOAT" || type === "DOUBLE") {
    return `case when isfinite(${column}) then to_json(${column}) else to_json(${column}::varchar) end`;
  }
  return column;
}

function insertText(
  table: string,
  pairs: readonly ColumnPair[],
  types: ReadonlyMap<string, string>,
  { mode, key }: TransferTask,
): string {
  const columns = pairs.map(({ target }) => quoteName(target)).join(", ");
  const value = ({ target, source }: ColumnPair) => valueText(source, types.get(target)!);
  const values = pairs.map(value).join(", ");
  const items = `select unnest(from_json($1, '["JSON"]')) as j`;
  if (mode !== "upsert") return `insert into ${table} (${columns}) select ${values} from (${items})`;
  const keys = keyPairs(key, pairs);
  const keyNames = keys.map(({ target }) => quoteName(target));
  const keyValues = keys.map(value).join(", ");
  const others = pairs.map(({ target }) => quoteName(target)).filter((name) => !keyNames.includes(name));
  const update = others.map((name) => `${name} = excluded.${name}`).join(", ");
  const numbered = `${items}, unnest(range(json_array_length($1)::bigint)) as n`;
  // Of rows with one key in a batch the last counts.
  return (
    `insert into ${table} (${columns}) select ${values} from ` +
    `(select distinct on (${keyValues}) j from (${numbered}) order by ${keyValues}, n desc) ` +
    `on conflict (${keyNames.join(", ")}) do ${update === "" ? "nothing" : `update set ${update}`}`
  );
}

/** A field of the row `j` as a value of the column's type. What has a structure is read from JSON, the rest from text. */
function valueText(field: string, type: string): string {
  const pointer = quoteText(`/${field.replaceAll("~", "~0").replaceAll("/", "~1")}`);
  if (type === "JSON") return `nullif(j->${pointer}, 'null')`;
  if (type === "BLOB") return `from_base64(j->>${pointer})`;
  if (/^(STRUCT|MAP|UNION|VARIANT)\b|\]$/.test(type)) return `(j->${pointer})::${type}`;
  return `(j->>${pointer})::${type}`;
}
