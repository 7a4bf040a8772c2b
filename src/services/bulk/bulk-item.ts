import type { BulkRow } from "../../repositories/bulk/bulk.ts";
import type { BulkItem, BulkOutcome } from "../../repositories/bulk/bulk-items.ts";
import type { Database } from "../../repositories/database/database.ts";
import { unavailable } from "../../repositories/database/error-codes.ts";
import { findExecution } from "../../repositories/executions/execution-list.ts";
import { decideUserAccess } from "../../schema/rules/access-rules.ts";
import type { AuditEntry } from "../../schema/words/audit-entry.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Sealer } from "../../schema/words/sealed.ts";
import type { Access } from "../access/access.ts";
import { audited, type Caller } from "../access/audit.ts";
import type { Executions } from "../executions/executions.ts";
import type { Triggers } from "../triggers/triggers.ts";
import { fireFor, triggerOf } from "./backfill.ts";
import { BULK_KEYS, type ItemRight, itemKey, type SteerOptions } from "./bulk-options.ts";
import { repeatItem } from "./bulk-rerun.ts";

/** What deciding an item needs. */
export interface BulkItemDeps {
  database: Database;
  executions: Pick<Executions, "cancel" | "pause" | "resume" | "rerun" | "startedUnder">;
  access: Pick<Access, "user">;
  triggers: Pick<Triggers, "find" | "fire">;
  /** By an operation's id: what it keeps of what people gave it is sealed. */
  sealerOf(bulkId: string): Sealer;
  /** Reports faults that an item has failed for. */
  onFault(error: unknown): void;
}

/** What has come of an item, and its row of the audit log where that is not written yet. */
export interface DecidedItem {
  outcome: BulkOutcome;
  entry?: AuditEntry;
}

/**
 * Does with one execution what the operation asks for, by the rights that its caller has now (control, rule 16). Undefined: it could not
 * be tried, as the database or the queue is away; it is the next one's turn then too. Never rejects.
 */
export async function decideBulkItem(
  deps: BulkItemDeps,
  operation: BulkRow,
  item: BulkItem,
): Promise<DecidedItem | undefined> {
  const { executionId } = item;
  let rule = OPERATOR_RULE;
  const told = (outcome: BulkOutcome) => ({ outcome, entry: entryOf(operation, rule, outcome) });
  try {
    if (operation.action === "backfill") {
      const trigger = await deps.triggers.find(triggerOf(operation));
      const right = await rightTo(deps.access, operation, trigger.path);
      rule = right.rule;
      if (!right.allowed) return told(failed(executionId, "FORBIDDEN", mayNoMore(operation, trigger.path)));
      const outcome = await fireFor(deps.triggers, trigger, operation, item);
      return outcome && told(outcome);
    }
    if (item.isAgain && operation.action === "rerun") {
      // Whatever has become of the original, and of the caller's rights: a server that died has started it.
      const newExecutionId = await deps.executions.startedUnder(BULK_KEYS, itemKey(operation.bulkId, executionId));
      if (newExecutionId !== undefined) return { outcome: { executionId, state: "done", newExecutionId } };
    }
    const row = await findExecution(deps.database, executionId);
    if (row === undefined) return told(skipped(executionId, "NOT_FOUND", "It was deleted meanwhile"));
    const right = await rightTo(deps.access, operation, row.path);
    rule = right.rule;
    if (!right.allowed) {
      return told(failed(executionId, "FORBIDDEN", mayNoMore(operation, row.path)));
    }
    if (operation.action === "rerun") {
      // Its row of the audit log is written with the new execution.
      const entry = (id: string) => entryOf(operation, rule, { executionId, state: "done", newExecutionId: id });
      return { outcome: await repeatItem(deps, operation, executionId, { right, entry }) };
    }
    return told(await steer(deps.executions, operation, item, row.status));
  } catch (error) {
    if (unavailable(error) !== undefined) return undefined;
    if (!(error instanceof FlowError)) {
      deps.onFault(error);
      return told(failed(executionId, "INTERNAL", "The server failed; its log says why"));
    }
    if (LATER.has(error.code)) return undefined;
    return told((NOTHING_TO_DO.has(error.code) ? skipped : failed)(executionId, error.code, error.message));
  }
}

/** Errors that say nothing about the execution. */
const LATER: ReadonlySet<string> = new Set(["UNAVAILABLE", "queue_unavailable", "ack_timeout"]);

/** Errors that say that it is so already. */
const NOTHING_TO_DO: ReadonlySet<string> = new Set(["already_terminal", "nothing_failed"]);

const OPERATOR_RULE = "access:operator";

function mayNoMore({ askedBy }: BulkRow, path: string): string {
  return `${askedBy} may not execute '${path}' any more`;
}

async function rightTo(access: BulkItemDeps["access"], { userId }: BulkRow, path: string): Promise<ItemRight> {
  if (userId === null) return { allowed: true, rule: OPERATOR_RULE, may: () => true };
  const user = await access.user({ userId });
  if (user === undefined) return { allowed: false, rule: "the user is not active", may: () => false };
  return {
    ...decideUserAccess(user, "execute", path),
    may: (other) => decideUserAccess(user, "execute", other).allowed,
  };
}

async function steer(
  executions: BulkItemDeps["executions"],
  { action, options, askedBy }: BulkRow,
  { executionId, isAgain }: BulkItem,
  status: string,
): Promise<BulkOutcome> {
  const { reason, cascade = true } = options as SteerOptions;
  if (action === "cancel") {
    const isEnded = status === "COMPLETED" || status === "FAILED" || status === "CANCELLED";
    // A server that died after it had cancelled it may have left out its children.
    if (isEnded && !(isAgain && status === "CANCELLED"))
      return skipped(executionId, "already_terminal", `It had ended (${status})`);
    const ended = await executions.cancel(executionId, { reason: reason ?? "Cancelled with others", cascade });
    if (ended.status === "CANCELLED") return { executionId, state: "done" };
    return skipped(executionId, "already_terminal", `It had ended (${ended.status})`);
  }
  const what = action === "pause" ? "pause" : "resume";
  const { isChanged, children } = await executions[what](executionId, {
    by: askedBy,
    cascade,
    ...defined({ reason }),
  });
  if (isChanged || children > 0 || isAgain) return { executionId, state: "done" };
  return skipped(executionId, "CONFLICT", what === "pause" ? "It was paused already" : "It was not paused");
}

/** The row of the audit log, as of a call of the operation's caller. */
function entryOf({ bulkId, action, options, askedBy, userId, asker }: BulkRow, rule: string, outcome: BulkOutcome) {
  const { executionId, state, why, newExecutionId } = outcome;
  const actor = userId === null ? {} : { actor: askedBy, userId };
  const actorKind = userId === null ? ("operator" as const) : ("user" as const);
  const caller: Caller = { ...(asker as Partial<Caller>), actorKind, ...actor, rule };
  const { reason } = options as SteerOptions;
  const isBackfill = action === "backfill";
  const about = isBackfill ? defined({ executionId: newExecutionId }) : { executionId: newExecutionId ?? executionId };
  return audited(
    { ...caller, ...about },
    isBackfill ? "trigger.fire" : `execution.${action}`,
    isBackfill ? `trigger/${options["trigger_id"]}` : `execution/${executionId}`,
    {
      result: state === "done" ? "allow" : why?.code === "FORBIDDEN" ? "deny" : "error",
      detail: {
        bulk_id: bulkId,
        ...defined({ reason, code: why?.code, execution_id: newExecutionId }),
      },
    },
  );
}

function skipped(executionId: string, code: string, message: string): BulkOutcome {
  return { executionId, state: "skipped", why: { code, message } };
}

function failed(executionId: string, code: string, message: string): BulkOutcome {
  return { executionId, state: "failed", why: { code, message } };
}
