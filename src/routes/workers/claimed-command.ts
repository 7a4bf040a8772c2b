import type { ClaimSecrets } from "../../platform/crypto/claim-secrets.ts";
import type { ClaimedCommandAnswer } from "../../schema/api/commands.ts";
import type { JsonObject } from "../../schema/words/json.ts";
import type { ClaimedCommand } from "../../services/orchestration/rounds/types.ts";

/** A claimed command as workers get it (Worker protocol). */
export function commandAnswer(
  { command, attempt, trustDomain, leaseExpiresAt, tool, spec }: ClaimedCommand,
  secrets: Pick<ClaimSecrets, "ofClaim">,
): ClaimedCommandAnswer {
  const { context, loop, claim, trace, woken } = command;
  const { parent_execution_id } = context;
  return {
    command_id: command.command_id,
    execution_id: command.execution_id,
    catalog_id: command.catalog_id,
    step: command.step,
    step_run_id: command.step_run_id,
    step_started_at: command.step_started_at,
    attempt,
    claim_secret: secrets.ofClaim({ commandId: command.command_id, attempt }),
    trust_domain: trustDomain,
    lease_expires_at: new Date(leaseExpiresAt).toISOString(),
    tool,
    spec,
    // Records that flow wrote, JSON throughout.
    context: context as unknown as JsonObject,
    ...(loop !== undefined && { loop: loop as unknown as JsonObject }),
    ...(claim !== undefined && { claim }),
    ...(woken !== undefined && { woken: woken as unknown as JsonObject }),
    ...(trace !== undefined && { trace }),
    ...(parent_execution_id !== undefined && { parent_execution_id }),
  };
}
