import { FlowError } from "../words/errors.ts";

/** Why a worker's call is refused that needs the secret of a claim. */
export type ClaimRefusal = "missing" | "unknown" | "ended" | "foreign";

/** The refusal of a worker's call that does not show the secret which it needs. */
export function claimRequired(reason: ClaimRefusal, message: string): FlowError {
  return new FlowError("claim_required", message, { detail: { reason } });
}

/** Whether a call was refused for the lack of a present claim's secret: the claim has ended, or the server cannot tell whose it is. */
export function isClaimRequired(error: unknown): boolean {
  return error instanceof FlowError && error.code === "claim_required";
}

/** The refusal of a call in the name of a claim for something that is not the claim's. */
export function notOfClaim(claim: { commandId: string; executionId: string }, what: string): FlowError {
  return claimRequired("foreign", `Command ${claim.commandId} of execution ${claim.executionId} may not use ${what}`);
}
