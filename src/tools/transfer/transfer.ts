import type { EgressGuard } from "../../platform/http/egress.ts";
import type { ToolResult } from "../../schema/words/outcome.ts";
import { failed } from "../../schema/words/outcome.ts";
import { TRANSFER_SOURCE, TRANSFER_TARGET } from "../../schema/words/task-kinds.ts";
import { isClickhouse } from "../clickhouse/connection.ts";
import { abortedResult, answering, configurationError } from "../contract/task-config.ts";
import type { Credential, Tool, ToolCall } from "../contract/tool.ts";
import type { DuckdbTool } from "../duckdb/duckdb.ts";
import { createGuardedAgents, type GuardedAgents } from "../http/dispatcher.ts";
import { SqlPools } from "../sql/pool.ts";
import type { SqlEgress } from "../sql/socket.ts";
import type { SqldbTool } from "../sqldb/sqldb.ts";
import { duckdbSource, duckdbTarget } from "./duckdb.ts";
import { httpSource } from "./from-http.ts";
import { postgresSource } from "./from-postgres.ts";
import { failureResult, type RowSource, type RowTarget, transferFailure } from "./rows.ts";
import { readTransferTask, type TransferTask } from "./task.ts";
import { postgresTarget } from "./to-postgres.ts";

/** What {@link createTransferTool} takes. */
export interface TransferOptions {
  /** Which addresses sources over HTTP may have. */
  egress: EgressGuard;
  /** Which databases may be written to. */
  sqlEgress: SqlEgress;
  /** The tools of kind `sqldb` and `duckdb`, whose databases are used. */
  driver: (kind: string) => Promise<Tool>;
  /** Most connections to one database that are written to at a time. Default 4. */
  connectionsMax?: number;
}

/**
 * `transfer`: rows from an HTTP answer or a query into a table, in batches (language document, section 8). Memory holds one
 * batch, however many rows there are; progress is reported after each. The target is one transaction: after an error or a
 * cancellation it is unchanged, so that a repetition writes nothing twice. Result `{status, rows_read, rows_written}`.
 */
export function createTransferTool(options: TransferOptions): Tool {
  const agents = createGuardedAgents(options.egress, { connectTimeoutMs: 10_000 });
  // Not those of `sqldb`, from which sources are read: tasks that each hold one session of a pool and wait for another
  // would wait for each other.
  const targets = new SqlPools({
    egress: options.sqlEgress,
    sessionsMax: options.connectionsMax ?? 4,
    idleMs: 30_000,
    connectTimeoutMs: 10_000,
  });
  const parts: Parts = { options, agents, targets };
  return {
    run: (call) => answering(() => runTask(call, parts)),
    async close() {
      await Promise.all([targets.close(), agents.close()]);
    },
  };
}

interface Parts {
  options: TransferOptions;
  agents: GuardedAgents;
  targets: SqlPools;
}

async function runTask(call: ToolCall, parts: Parts): Promise<ToolResult> {
  const task = readTransferTask(call.config);
  const counts = { rows_read: 0, rows_written: 0, chunks: 0 };
  let target: RowTarget | undefined;
  try {
    call.signal.throwIfAborted();
    const source = await openSource(call, task, parts);
    target = await openTarget(call, task, parts);
    await copy(call, source, target, task, counts);
    return { status: "ok", data: { status: "success", ...rowsOf(counts) } };
  } catch (error) {
    if (call.signal.aborted) return abortedResult(call.signal, `The transfer to table ${task.target.table}`);
    const result = failureResult(error);
    if (result === undefined) throw error;
    return { ...result, data: { status: "error", ...rowsOf(counts), rows_written: 0 } };
  } finally {
    await target?.close();
  }
}

/** How far a transfer is. */
interface Counts {
  rows_read: number;
  rows_written: number;
  chunks: number;
}

async function copy(
  call: ToolCall,
  source: RowSource,
  target: RowTarget,
  task: TransferTask,
  counts: Counts,
): Promise<void> {
  for await (const batch of source.batches(task.limits)) {
    counts.rows_read += batch.rows.length;
    counts.rows_written += await target.write(batch);
    counts.chunks += 1;
    call.progress?.({ ...counts });
  }
  await target.commit();
}

/** For the result: the number of chunks is of no use to its reader. */
function rowsOf({ rows_read, rows_written }: Counts) {
  return { rows_read, rows_written };
}

async function openSource(call: ToolCall, task: TransferTask, parts: Parts): Promise<RowSource> {
  const { type, config } = task.source;
  const auth = authOf(call, TRANSFER_SOURCE);
  if (type === "http") {
    const { type: _type, kind: _kind, ...keys } = config;
    const fields = Object.values(task.target.mapping ?? {});
    return await httpSource({ ...call, config: keys, auth }, parts.agents, fields);
  }
  if (type === "duckdb") {
    const { databases } = await driver<DuckdbTool>(call, parts, "duckdb", "databases");
    return duckdbSource(config, { databases, executionId: call.executionId, signal: call.signal });
  }
  const { pools } = await driver<SqldbTool>(call, parts, "sqldb", "pools");
  return postgresSource(config, sqlAuth(auth, "source"), pools, call.signal);
}

async function openTarget(call: ToolCall, task: TransferTask, parts: Parts): Promise<RowTarget> {
  if (task.target.type === "duckdb") {
    const { databases } = await driver<DuckdbTool>(call, parts, "duckdb", "databases");
    return await duckdbTarget(task, { databases, executionId: call.executionId, signal: call.signal });
  }
  // Checked as well: where sqldb tasks are not allowed, a transfer must not write to a database either.
  await driver<SqldbTool>(call, parts, "sqldb", "pools");
  return await postgresTarget(task, sqlAuth(authOf(call, TRANSFER_TARGET), "target"), parts.targets, call.signal);
}

/** The tool of a kind. Throws a `transferFailure` with its own refusal where the kind may not run here. */
async function driver<T extends Tool>(
  call: ToolCall,
  { options }: Parts,
  kind: string,
  has: keyof T & string,
): Promise<T> {
  const tool = await options.driver(kind);
  if (has in tool) return tool as T;
  const refusal = await tool.run(call);
  throw transferFailure(refusal.error === undefined ? failed("configuration", "KIND_NOT_AVAILABLE", kind) : refusal);
}

/** The credential of the source or the target, as its own tool would get it. */
function authOf(call: ToolCall, alias: string): Record<string, Credential> {
  const credential = Object.hasOwn(call.auth, alias) ? call.auth[alias] : undefined;
  return credential === undefined ? {} : { [credential.name]: credential, default: credential };
}

function sqlAuth(auth: Record<string, Credential>, which: string): Record<string, Credential> {
  if (!isClickhouse(auth["default"])) return auth;
  throw configurationError(
    `The transfer task's ${which} has a credential of type ${auth["default"].type}: its databases are PostgreSQL and DuckDB.`,
  );
}
