import { decideUserAccess } from "../../schema/rules/access-rules.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { Access } from "../access/access.ts";
import { type Audit, audited } from "../access/audit.ts";

/** What {@link checkStarter} needs. */
export interface StarterDeps {
  access: Pick<Access, "user">;
  audit: Pick<Audit, "refused">;
}

/**
 * A child runs in the name of the user who started its parent, with that user's current permissions: otherwise every author of
 * a playbook could run any other playbook by calling it. Rejects with `FlowError` FORBIDDEN, which is recorded in the audit
 * log.
 */
export function checkStarter({
  access,
  audit,
}: StarterDeps): (parentExecutionId: string, userId: number, path: string) => Promise<void> {
  return async (parentExecutionId, userId, path) => {
    const user = await access.user({ userId });
    const { allowed, rule } =
      user === undefined ? { allowed: false, rule: "the user is not active" } : decideUserAccess(user, "execute", path);
    if (allowed) return;
    const who = user?.email ?? `user ${userId}`;
    const caller = { actorKind: "user", actor: who, userId: String(userId), rule } as const;
    const detail = { parent_execution_id: parentExecutionId };
    audit.refused(audited(caller, "playbook.execute", `playbook/${path}`, { result: "deny", detail }));
    const message = `Execution ${parentExecutionId} runs in the name of ${who}, who may not execute ${path}: ${rule}`;
    throw new FlowError("FORBIDDEN", message, { detail: { path } });
  };
}
