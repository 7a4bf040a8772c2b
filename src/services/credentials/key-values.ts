import type { Database } from "../../repositories/database/database.ts";
import { findExecution } from "../../repositories/executions/execution-list.ts";
import {
  deleteExecutionValue,
  deleteValuesLeft,
  type ExecutionValue,
  type ExecutionValueListed,
  findExecutionValue,
  listExecutionValues,
  putExecutionValue,
} from "../../repositories/executions/execution-values.ts";
import { TRANSIENT_BYTES_MAX, TRANSIENT_KEYS_MAX } from "../../schema/api/transient.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Json } from "../../schema/words/json.ts";
import type { Listed, PageQuery } from "../catalog/catalog.ts";
import { unknownExecution } from "../errors.ts";
import { encodeCursor, textCursor } from "../pagination-cursor.ts";

/** Values that the workers of an execution leave for each other: they end a day after it, and are no part of its log. */
export interface TransientValues {
  /** Throws `FlowError` NOT_FOUND where there is no such value. */
  get(executionId: string, key: string): Promise<ExecutionValue & { value: Json }>;
  /**
   * Stores or replaces a value. Throws `FlowError` NOT_FOUND for an unknown execution, CONFLICT if the execution has ended,
   * TOO_LARGE.
   */
  put(executionId: string, key: string, value: Json, ttlMs?: number): Promise<ExecutionValue>;
  remove(executionId: string, key: string): Promise<void>;
  /** By key. Throws `FlowError` NOT_FOUND for an unknown execution. */
  list(executionId: string, page: PageQuery): Promise<Listed<ExecutionValueListed>>;
  /** Deletes what executions that ended a day ago, or are gone, have left; gives how many. To be called now and then. */
  sweep(): Promise<number>;
}

/** How long values can be looked at after the end of their execution. */
const KEPT_DAYS = 1;
/** Executions that one statement looks at, of {@link TRANSIENT_KEYS_MAX} values each at most. */
const EXECUTIONS_MAX = 50;
const ROUNDS_MAX = 20;

/** The transient values of a database. */
export function createTransientValues({ database }: { database: Database }): TransientValues {
  /** Where the walk over executions goes on. */
  let place = "";
  return {
    async get(executionId, key) {
      const found = await findExecutionValue(database, executionId, key);
      if (found === undefined) {
        throw new FlowError("NOT_FOUND", `Execution ${executionId} has no transient value '${key}', or not any more`);
      }
      const { json, ...entry } = found;
      return { ...entry, value: JSON.parse(json) as Json };
    },
    async put(executionId, key, value, ttlMs) {
      const json = JSON.stringify(value);
      const bytes = Buffer.byteLength(json);
      if (bytes > TRANSIENT_BYTES_MAX) {
        throw refused(
          "TOO_LARGE",
          key,
          `is ${count(bytes)} bytes of JSON, and ${count(TRANSIENT_BYTES_MAX)} are the most`,
        );
      }
      const entry = { key, json, ttlMs: ttlMs ?? null, keysMax: TRANSIENT_KEYS_MAX };
      const outcome = await putExecutionValue(database, executionId, entry);
      switch (outcome.status) {
        case "saved":
          return outcome.value;
        case "unknown":
          throw unknownExecution(executionId);
        case "ended":
          throw refused("CONFLICT", key, `would come after the end of execution ${executionId}`);
        case "full":
          throw refused("TOO_LARGE", key, `is one too many: an execution keeps ${count(TRANSIENT_KEYS_MAX)}`);
      }
    },
    remove: (executionId, key) => deleteExecutionValue(database, executionId, key),
    async list(executionId, { limit, cursor }) {
      if ((await findExecution(database, executionId)) === undefined) throw unknownExecution(executionId);
      const after = cursor === undefined ? undefined : textCursor(cursor);
      const found = await listExecutionValues(database, executionId, limit + 1, after);
      const items = found.slice(0, limit);
      const last = items.at(-1);
      return { items, nextCursor: found.length > limit && last !== undefined ? encodeCursor(last.key) : null };
    },
    async sweep() {
      let removed = 0;
      for (let round = 0; round < ROUNDS_MAX; round += 1) {
        const { deleted, next } = await deleteValuesLeft(database, place, KEPT_DAYS, EXECUTIONS_MAX);
        removed += deleted;
        place = next ?? "";
        if (next === undefined) break;
      }
      return removed;
    },
  };
}

function count(number: number): string {
  return number.toLocaleString("en");
}

function refused(code: "TOO_LARGE" | "CONFLICT", key: string, why: string): FlowError {
  return new FlowError(code, `The transient value '${key}' was not stored: it ${why}`);
}
