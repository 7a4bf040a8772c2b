import type { ClaimSecrets } from "../../platform/crypto/claim-secrets.ts";
import type { Database } from "../../repositories/database/database.ts";
import { findEndedClaim } from "../../repositories/executions/command-runs.ts";
import { type FoundClaim, findClaim } from "../../repositories/workers/present-claim.ts";
import type { RouteContract } from "../../schema/routes/contract.ts";
import { claimRequired, notOfClaim } from "../../schema/rules/claim-refusals.ts";

/** A claim that a worker calls for. */
export type PresentClaim = FoundClaim;

/** The claims for which workers call. */
export interface PresentClaims {
  /**
   * The claim whose secret a call came with, checked against the command's row (that of an ended one, against the log), and not against
   * anything in memory: so it holds on every server, and ends with the
   * claim. `aboutId` is the execution that the call is about. Throws `FlowError` claim_required.
   */
  admit(
    secret: string | undefined,
    needs: NonNullable<RouteContract["claim"]>,
    aboutId: string | undefined,
  ): Promise<PresentClaim>;
}

type ClaimKey = NonNullable<ReturnType<ClaimSecrets["claimOf"]>>;

/** The claims of a database. */
export function createPresentClaims({
  database,
  claimSecrets,
}: {
  database: Database;
  claimSecrets: Pick<ClaimSecrets, "claimOf">;
}): PresentClaims {
  const ended = async ({ commandId, attempt }: ClaimKey, aboutId: string | undefined) => {
    // A command that was claimed again keeps its row.
    if (attempt !== 1 || aboutId === undefined) return undefined;
    const found = await findEndedClaim(database, commandId, aboutId);
    return found && { ...found, commandId, attempt, worker: null, isHeld: false, isInTree: true, isChild: true };
  };
  return {
    async admit(secret, needs, aboutId) {
      if (secret === undefined) throw claimRequired("missing", MISSING);
      const claim = claimSecrets.claimOf(secret);
      if (claim === undefined) throw claimRequired("unknown", UNKNOWN);
      const { commandId, attempt } = claim;
      const found =
        (await findClaim(database, claim, aboutId)) ?? (needs === "stop" ? await ended(claim, aboutId) : undefined);
      if (found === undefined || !(found.isHeld || needs === "stop")) {
        const what = `Attempt ${attempt} of command ${commandId}`;
        throw claimRequired(
          "ended",
          `${what} is not its present claim: it has ended, or another worker has it. Drop the work`,
        );
      }
      if (needs === "asked") return found;
      const isTheirs = needs === "tree" ? found.isInTree : found.isChild;
      if (isTheirs) return found;
      const relation = needs === "tree" ? "of its tree of executions" : "called by its execution";
      throw notOfClaim(found, `execution ${aboutId ?? ""}, which is not ${relation}`);
    },
  };
}

const MISSING =
  "A worker asks for this in the name of a command that it has claimed: send the claim's secret (claim_secret) as x-flow-claim. A worker of an older version does not; upgrade it";
const UNKNOWN = "The claim's secret (x-flow-claim) is not one that this server's keys have made";
