import type { Database } from "../database/database.ts";

/** A claim of a command, and the execution that it is of. */
export interface FoundClaim {
  commandId: string;
  attempt: number;
  /** Null once the command has ended. */
  worker: string | null;
  step: string;
  executionId: string;
  rootExecutionId: string;
  /** Of the execution, and of the root of its tree. */
  catalogId: string;
  rootCatalogId: string;
  path: string;
  /** A worker holds the command under this claim. */
  isHeld: boolean;
}

/** The relation of a claim's execution to another one. */
export interface ClaimSubject {
  /** Of the same tree, or one whose results the tree refers to: a rerun takes them over. */
  isInTree: boolean;
  /** It was called by the execution; or the execution is a rerun that refers to its results. */
  isChild: boolean;
}

/**
 * A command's claim, if no other one came after it; with what another execution is to its own. Undefined for a claim that another
 * one has replaced, for an execution that is gone, and for most commands that have ended (`executions/command-runs`). By primary keys;
 * takes no lock: whatever the claim is used for may end a moment after the claim.
 */
export async function findClaim(
  { sql }: Database,
  { commandId, attempt }: { commandId: string; attempt: number },
  aboutId: string | undefined,
): Promise<(FoundClaim & ClaimSubject) | undefined> {
  const [row] = await sql<(FoundClaim & ClaimSubject)[]>`
    select c.command_id as "commandId", c.attempt, c.worker, c.step, e.execution_id as "executionId",
      e.root_execution_id as "rootExecutionId", e.catalog_id as "catalogId",
      coalesce(root.catalog_id, e.catalog_id) as "rootCatalogId", e.path,
      c.status in ('CLAIMED', 'RUNNING') as "isHeld",
      coalesce(about.root_execution_id = e.root_execution_id, false)
        or coalesce(${aboutId ?? null}::bigint = any(root.refers_to), false) as "isInTree",
      coalesce(about.parent_execution_id = e.execution_id, false)
        or coalesce(${aboutId ?? null}::bigint = any(e.refers_to), false) as "isChild"
    from flow.command c
      join flow.execution e on e.execution_id = c.execution_id
      left join flow.execution root on root.execution_id = e.root_execution_id
      left join flow.execution about on about.execution_id = ${aboutId ?? null}::bigint
    where c.command_id = ${commandId} and c.attempt = ${attempt}`;
  return row;
}
