import type { Context } from "hono";
import { notOfClaim } from "../../schema/rules/claim-refusals.ts";
import type { RouteEnvironment } from "./request-context.ts";

/**
 * The execution that a call is made for: of a worker that of its claim, whatever the call names; of others the one that it names.
 * Throws `FlowError` claim_required for a worker that names another one.
 */
export function claimedExecution(c: Context<RouteEnvironment>, named: string | undefined): string | undefined {
  const claim = c.get("claim");
  if (claim === undefined) return named;
  if (named !== undefined && named !== claim.executionId) throw notOfClaim(claim, `execution ${named}`);
  return claim.executionId;
}
