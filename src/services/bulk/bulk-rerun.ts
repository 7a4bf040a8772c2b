import { createHash } from "node:crypto";
import type { BulkRow } from "../../repositories/bulk/bulk.ts";
import type { BulkOutcome } from "../../repositories/bulk/bulk-items.ts";
import type { BulkRerunOptions } from "../../schema/api/steering.ts";
import type { AuditEntry } from "../../schema/words/audit-entry.ts";
import { defined } from "../../schema/words/defined.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Sealer } from "../../schema/words/sealed.ts";
import type { Executions } from "../executions/executions.ts";
import type { RerunRequest } from "../executions/rerun-execution.ts";
import { BULK_KEYS, type ItemRight, itemKey, openedOptions } from "./bulk-options.ts";

/** What a rerun would run, or why it would be refused. */
export type PlannedItem = { reused: number; willRun: string[] } | { refused: { code: string; message: string } };

/** Begins the rerun of an item, once however often it is called. Rejects as a rerun does. */
export async function repeatItem(
  { executions, sealerOf }: { executions: Pick<Executions, "rerun">; sealerOf(bulkId: string): Sealer },
  operation: BulkRow,
  executionId: string,
  { right, entry }: { right: ItemRight; entry(newExecutionId: string): AuditEntry },
): Promise<BulkOutcome> {
  const { bulkId, askedBy, userId } = operation;
  const options = openedOptions(operation.options, sealerOf(bulkId)) as BulkRerunOptions;
  const body = JSON.stringify(options);
  const { executionId: newExecutionId = "" } = await executions.rerun(executionId, {
    ...requestOf(options),
    by: askedBy,
    dryRun: false,
    bytes: body.length,
    permit: async (path) => {
      if (!right.may(path)) throw new FlowError("FORBIDDEN", `${askedBy} may not execute '${path}' any more`);
    },
    may: right.may,
    log: { rows: (id) => [entry(id)], ended: () => undefined },
    ...(userId !== null && { startedBy: Number(userId) }),
    origin: { kind: "bulk", id: bulkId },
    idempotency: {
      caller: BULK_KEYS,
      key: itemKey(bulkId, executionId),
      bodySha256: createHash("sha256").update(body).digest("hex"),
    },
  });
  return { executionId, state: "done", newExecutionId };
}

/** What it would do with one execution. Rejects only where that could not be found out. */
export async function planItem(
  executions: Pick<Executions, "rerun">,
  executionId: string,
  options: BulkRerunOptions,
): Promise<PlannedItem> {
  try {
    const { reused, willRun } = await executions.rerun(executionId, { ...requestOf(options), dryRun: true });
    return { reused, willRun };
  } catch (error) {
    if (!(error instanceof FlowError) || error.code === "UNAVAILABLE") throw error;
    return { refused: { code: error.code, message: error.message } };
  }
}

function requestOf(options: BulkRerunOptions): Omit<RerunRequest, "dryRun"> {
  const { from, only = false, reason, input = {}, variables = {}, step_input: stepInput = {} } = options;
  return {
    ...defined({ from, reason }),
    only,
    edits: { input, variables, stepInput },
    version: options.version ?? "same",
    reuseIterations: options.reuse_iterations ?? true,
    reuseChildren: {},
    permitView: () => Promise.resolve(),
  };
}
