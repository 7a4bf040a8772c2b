import { findReading } from "../../repositories/access/access.ts";
import type { Database } from "../../repositories/database/database.ts";
import { executionOfRef } from "../../schema/api/results.ts";
import { decideUserAccess } from "../../schema/rules/access-rules.ts";
import type { Access } from "../access/access.ts";
import { type Audit, audited } from "../access/audit.ts";
import { notAvailable } from "../results/read-result.ts";

/** What {@link checkReading} needs. */
export interface ReadingDeps {
  database: Database;
  access: Pick<Access, "user">;
  audit: Pick<Audit, "refused">;
}

/**
 * An execution reads references in the name of the user who started it: results of its own tree, and of executions that this
 * user may view. Otherwise every author of a playbook could read all results. Rejects with `FlowError` REFERENCE_NOT_AVAILABLE,
 * which is recorded in the audit log.
 */
export function checkReading({
  database,
  access,
  audit,
}: ReadingDeps): (executionId: string, ref: string) => Promise<void> {
  return async (executionId, ref) => {
    const about = executionOfRef(ref);
    // Its own result, or not a reference.
    if (about === undefined || about === executionId) return;
    const reading = await findReading(database, executionId, about);
    if (reading === undefined) throw notAvailable(ref, "it was never stored or has been deleted");
    const { startedBy: userId, isOneTree, path } = reading;
    if (isOneTree) return;
    if (path === null) throw notAvailable(ref, "it was never stored or has been deleted");
    if (userId === null) return;
    const user = await access.user({ userId });
    const { allowed, rule } =
      user === undefined ? { allowed: false, rule: "the user is not active" } : decideUserAccess(user, "view", path);
    if (allowed) return;
    const who = user?.email ?? `user ${userId}`;
    const caller = { actorKind: "user", actor: who, userId: String(userId), rule } as const;
    const detail = { execution_id: executionId, of_execution_id: about };
    audit.refused(audited(caller, "playbook.view", `playbook/${path}`, { result: "deny", detail }));
    throw notAvailable(ref, `execution ${executionId} runs in the name of ${who}, who may not view execution ${about}`);
  };
}
