import { isTerminal } from "../../engine/state/state.ts";
import type { BulkRow } from "../../repositories/bulk/bulk.ts";
import type { BulkItem, BulkOutcome } from "../../repositories/bulk/bulk-items.ts";
import type { Database } from "../../repositories/database/database.ts";
import { findExecution } from "../../repositories/executions/execution-list.ts";
import { decideUserAccess } from "../../schema/rules/access-rules.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Access } from "../access/access.ts";
import type { Executions } from "../executions/executions.ts";

/** What deciding an item needs. */
export interface BulkItemDeps {
  database: Database;
  executions: Pick<Executions, "cancel" | "pause" | "resume">;
  access: Pick<Access, "user">;
}

/** Options of an operation that ends or steers executions. */
interface SteerOptions {
  reason?: string;
  cascade?: boolean;
}

/**
 * Does with one execution what the operation asks for, by the rights that its caller has now (control, rule 16). Undefined: it could not
 * be tried, as the database or the queue is away; it is the next one's turn then too. Never rejects.
 */
export async function decideBulkItem(
  deps: BulkItemDeps,
  operation: BulkRow,
  item: BulkItem,
): Promise<BulkOutcome | undefined> {
  const { executionId } = item;
  try {
    const row = await findExecution(deps.database, executionId);
    if (row === undefined) return skipped(executionId, "NOT_FOUND", "It was deleted meanwhile");
    if (!(await mayExecute(deps.access, operation, row.path))) {
      const message = `${operation.askedBy} may not execute '${row.path}' any more`;
      return { executionId, state: "failed", why: { code: "FORBIDDEN", message } };
    }
    return await act(deps, operation, item, row.status);
  } catch (error) {
    if (!(error instanceof FlowError)) return failed(executionId, "INTERNAL", "It failed for a fault of the server");
    if (LATER.has(error.code)) return undefined;
    const isOver = error.code === "already_terminal" || error.code === "NOT_FOUND";
    return (isOver ? skipped : failed)(executionId, error.code, error.message);
  }
}

/** Errors that say nothing about the execution. */
const LATER: ReadonlySet<string> = new Set(["UNAVAILABLE", "queue_unavailable", "ack_timeout"]);

async function mayExecute(access: BulkItemDeps["access"], { userId }: BulkRow, path: string): Promise<boolean> {
  if (userId === null) return true;
  const user = await access.user({ userId });
  return user !== undefined && decideUserAccess(user, "execute", path).allowed;
}

async function act(
  { executions }: BulkItemDeps,
  { action, options, askedBy }: BulkRow,
  { executionId, isAgain }: BulkItem,
  status: Parameters<typeof isTerminal>[0],
): Promise<BulkOutcome> {
  const { reason, cascade = true } = options as SteerOptions;
  if (action === "cancel") {
    // A server that died after it had cancelled it may have left out its children.
    if (isTerminal(status) && !(isAgain && status === "CANCELLED"))
      return skipped(executionId, "already_terminal", `It had ended (${status})`);
    const ended = await executions.cancel(executionId, { reason: reason ?? "Cancelled with others", cascade });
    if (ended.status === "CANCELLED") return { executionId, state: "done" };
    return skipped(executionId, "already_terminal", `It had ended (${ended.status})`);
  }
  if (action === "rerun") throw new FlowError("INVALID_INPUT", "This server cannot repeat executions");
  const { isChanged, children } = await executions[action](executionId, {
    by: askedBy,
    cascade,
    ...(reason !== undefined && { reason }),
  });
  if (isChanged || children > 0 || isAgain) return { executionId, state: "done" };
  return skipped(executionId, "CONFLICT", action === "pause" ? "It was paused already" : "It was not paused");
}

function skipped(executionId: string, code: string, message: string): BulkOutcome {
  return { executionId, state: "skipped", why: { code, message } };
}

function failed(executionId: string, code: string, message: string): BulkOutcome {
  return { executionId, state: "failed", why: { code, message } };
}
