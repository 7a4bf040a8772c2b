/**
 * What a flush writes, by table and column, with the type of each. Names are those of the tables; `lease_ms` counts from the
 * database's now, `deadline_ms` and `started_ms` from 1970.
 */
export const FLUSH_COLUMNS = {
  /** Executions that go on. */
  executions: {
    execution_id: "bigint",
    expected_event_id: "bigint",
    last_event_id: "bigint",
    status: "text",
    progress: "smallint",
    result: "json",
    error: "json",
  },
  /** Executions that begin. */
  starts: {
    execution_id: "bigint",
    catalog_id: "bigint",
    path: "text",
    version: "int",
    status: "text",
    progress: "smallint",
    last_event_id: "bigint",
    parent_execution_id: "bigint",
    parent_step: "text",
    root_execution_id: "bigint",
    started_by: "bigint",
    result: "json",
    error: "json",
    started_ms: "float8",
    deadline_ms: "float8",
    caller: "text",
    idempotency_key: "text",
    body_sha256: "text",
  },
  events: {
    event_id: "bigint",
    execution_id: "bigint",
    catalog_id: "bigint",
    event_type: "text",
    node_id: "text",
    node_name: "text",
    node_type: "text",
    status: "text",
    created_at: "timestamptz",
    parent_event_id: "bigint",
    parent_execution_id: "bigint",
    command_id: "bigint",
    worker: "text",
    attempt: "int",
    iteration: "bigint",
    page: "bigint",
    step_run_id: "text",
    task_run_id: "text",
    duration_ms: "float8",
    result: "json",
    error: "json",
    meta: "json",
  },
  /** Commands that begin. */
  issued: {
    command_id: "bigint",
    execution_id: "bigint",
    catalog_id: "bigint",
    step: "text",
    status: "text",
    attempt: "int",
    kinds: "text[]",
    labels: "jsonb",
    body: "json",
    worker: "text",
    lease_ms: "float8",
  },
  /** Commands of earlier changes. */
  commands: {
    command_id: "bigint",
    execution_id: "bigint",
    status: "text",
    attempt: "int",
    worker: "text",
    lease_ms: "float8",
  },
  snapshots: { execution_id: "bigint", event_id: "bigint", format: "smallint", state: "document" },
  /** Batches that begin. */
  accepted: {
    request_id: "bigint",
    caller: "text",
    idempotency_key: "text",
    body_sha256: "text",
    state: "text",
    code: "text",
    message: "text",
    execution_ids: "bigint[]",
    event_ids: "bigint[]",
    commands_generated: "int",
  },
  /** Batches that were accepted before. */
  batches: { request_id: "bigint", state: "text", code: "text", message: "text", commands_generated: "int" },
  /** Which batch needs which executions: one row each. */
  needs: { request_id: "bigint", execution_id: "bigint" },
} as const satisfies Record<string, Record<string, ColumnType>>;

/**
 * How a column travels (`column-text.ts`): as an array of its type (`numbers`, `texts`); a JSON type as `documents`, one that
 * stays text as `document`; an array as the texts of arrays.
 */
type ColumnType =
  | "bigint"
  | "int"
  | "smallint"
  | "float8"
  | "text"
  | "timestamptz"
  | "json"
  | "jsonb"
  | "document"
  | "text[]"
  | "bigint[]";

/** One text per column: as many rows in each of a table's columns. */
export type FlushColumns = {
  readonly [T in FlushTable]: Readonly<Record<keyof (typeof FLUSH_COLUMNS)[T], string>>;
};

/** A table of {@link FLUSH_COLUMNS}. */
export type FlushTable = keyof typeof FLUSH_COLUMNS;

/**
 * Columns of events that most flushes do not need: left out together where all of them are empty, because every column costs
 * PostgreSQL time, be it empty or not.
 */
const RARE: ReadonlySet<string> = new Set(["parent_execution_id", "iteration", "page", "error"]);

/** Which part of {@link FLUSH_COLUMNS} a flush uses. */
export interface FlushShape {
  tables: ReadonlySet<FlushTable>;
  /** Whether events have any of the rare columns. */
  rare: boolean;
}

/** The shape of these columns: the tables that have rows. A table without rows has nothing but empty columns. */
export function shapeOf(columns: FlushColumns): FlushShape {
  const hasRows = (table: FlushTable) => Object.values(columns[table]).some((text) => text !== "" && text !== "{}");
  const tables = (Object.keys(FLUSH_COLUMNS) as FlushTable[]).filter(hasRows);
  const events = columns.events as Record<string, string>;
  const rare = [...RARE].some((column) => events[column] !== "" && events[column] !== "{}");
  return { tables: new Set(tables), rare };
}

/** Where the parameters of a shape stand, and what reads them. */
export interface FlushPlaces {
  /** SQL for the rows of a table: a subquery that takes its parameters apart. */
  rowsOf(table: FlushTable): string;
  /** Names of the columns of a table, in the order of {@link rowsOf}. */
  namesOf(table: FlushTable): string[];
  /** The columns in the order of the statement's parameters. */
  parameters(columns: FlushColumns): string[];
}

/** Places for a shape: columns that it leaves out have none. */
export function flushPlaces({ tables, rare }: FlushShape): FlushPlaces {
  const places = Object.entries(FLUSH_COLUMNS).flatMap(([table, columns]) =>
    Object.keys(columns)
      .filter((column) => tables.has(table as FlushTable) && (rare || table !== "events" || !RARE.has(column)))
      .map((column) => [table as FlushTable, column] as const),
  );
  const namesOf = (table: FlushTable) => places.filter(([owner]) => owner === table).map(([, column]) => column);
  return {
    namesOf,
    rowsOf(table) {
      const types: Record<string, ColumnType> = FLUSH_COLUMNS[table];
      const columns = namesOf(table).map((column) => {
        const place = places.findIndex((entry) => entry[0] === table && entry[1] === column) + 1;
        return `${unnest(types[column] ?? "text", `$${place}`)} as ${column}`;
      });
      return `(select ${columns.join(", ")})`;
    },
    parameters: (columns) => places.map(([table, column]) => (columns[table] as Record<string, string>)[column] ?? ""),
  };
}

/**
 * Set-returning functions side by side in a select list run in step, and the shorter ones are filled up with NULL. The same
 * with `from unnest(a, b, …)` would first write every column to a store of its own: a tenth slower for the whole flush.
 */
function unnest(type: ColumnType, parameter: string): string {
  const documents = `unnest(string_to_array(${parameter}::text, E'\\x1e', ''))`;
  if (type === "document") return documents;
  if (type === "json" || type === "jsonb") return `${documents}::${type}`;
  return type.endsWith("[]") ? `unnest(${parameter}::text[])::${type}` : `unnest(${parameter}::${type}[])`;
}
