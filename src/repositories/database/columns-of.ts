import { getTableColumns } from "drizzle-orm";
import type { PgTable } from "drizzle-orm/pg-core";
import type { ISql, PendingQuery, Row } from "postgres";

/** A column list for tagged statements; see {@link columnsOf}. */
export interface ColumnList<R> {
  /** The list as a piece of a statement. `alias` names the table where the statement gives it another name. */
  (sql: ISql, alias?: string): PendingQuery<Row[]>;
  /** A row that was read with the list. A type only: nothing is there at runtime. */
  readonly row?: R;
}

/** The type of a row that was read with a {@link columnsOf} list. */
export type RowOf<L extends ColumnList<unknown>> = NonNullable<L["row"]>;

/**
 * Columns of a table for a tagged statement, named as in the program: `execution_id as "executionId"`. The row type is the table's
 * own, so a column that is renamed or changes its type is a compile error. Columns of 64-bit numbers are cast to `float8`, exact
 * below 2^53: the driver reads 64-bit integers as text, which is right for ids alone.
 */
export function columnsOf<T extends PgTable, const K extends keyof T["$inferSelect"] & string>(
  table: T,
  names: readonly K[],
): ColumnList<Pick<T["$inferSelect"], K>> {
  const columns = getTableColumns(table);
  const list = names.map((name) => {
    const column = columns[name]!;
    const text = column.columnType === "PgBigInt53" ? `${column.name}::float8` : column.name;
    return text === name ? text : `${text} as "${name}"`;
  });
  return (sql, alias) => sql.unsafe(list.map((text) => (alias === undefined ? text : `${alias}.${text}`)).join(", "));
}

/**
 * SQL: the arguments of `json_build_object` for columns of a table, named as in the program: `'playbookPath', p.playbook_path`. Ids
 * become texts; do not name times, which JSON would have in the session's time zone. `alias` as in {@link columnsOf}.
 */
export function jsonFields<T extends PgTable>(
  table: T,
  names: readonly (keyof T["$inferSelect"] & string)[],
  alias?: string,
): string {
  const columns = getTableColumns(table);
  const fields = names.map((name) => {
    const column = columns[name]!;
    const text = alias === undefined ? column.name : `${alias}.${column.name}`;
    return `'${name}', ${column.getSQLType() === "bigint" && column.columnType !== "PgBigInt53" ? `${text}::text` : text}`;
  });
  return fields.join(", ");
}
