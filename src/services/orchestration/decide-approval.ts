import { type GivenDecision, judgeDecision } from "../../engine/decide/approvals.ts";
import { openCommand } from "../../engine/state/state.ts";
import { defined } from "../../schema/words/defined.ts";
import type { FlowError } from "../../schema/words/errors.ts";
import type { EventOf } from "../../schema/words/event.ts";
import { unknownExecution } from "../errors.ts";
import { runJob } from "./jobs.ts";
import type { ApprovalPlace } from "./orchestrator.ts";
import type { OrchestratorParts } from "./parts.ts";
import type { RoundLoop } from "./round-loop.ts";
import { applyEvent, applyUndecided } from "./rounds/apply-event.ts";

/** {@link Orchestrator.decide}. Refused on a state that was just loaded only. */
export async function decideApproval(
  { store, now }: Pick<OrchestratorParts, "store" | "now">,
  roundLoop: Pick<RoundLoop, "push">,
  { approvalId, executionId, commandId }: ApprovalPlace,
  given: GivenDecision,
): Promise<"open" | "approved" | "rejected"> {
  let status: "open" | "approved" | "rejected" = "open";
  let refusal: FlowError | undefined;
  await runJob(roundLoop, [executionId], (base) => ({
    ...base,
    check(round) {
      const live = round.changes(executionId)?.live;
      const why =
        live === undefined ? unknownExecution(executionId) : judgeDecision(live.state, commandId, approvalId, given);
      if (why !== undefined) throw why;
    },
    async apply(round) {
      const changes = round.changes(executionId);
      if (changes === undefined) return;
      await applyUndecided(changes, round.applyDeps);
      const { state, decisions } = changes.live;
      // What was accepted before, and is decided now, may have ended the execution.
      refusal = judgeDecision(state, commandId, approvalId, given);
      const command = openCommand(state, commandId);
      if (refusal !== undefined || command?.parked === undefined) return;
      const { step, parked } = command;
      const event: EventOf<"approval.decided"> = {
        ...{ type: "approval.decided", at: now(), approval_id: approvalId, command_id: commandId, step },
        ...defined({ iteration: parked.resume.iteration }),
        ...given,
      };
      await applyEvent(changes, decisions.sealing?.event(event) ?? event, round.applyDeps);
      status = openCommand(state, commandId)?.woken?.approval?.outcome ?? "open";
      const woken = changes.woken();
      for (const body of woken.length === 0 ? [] : await store.commandBodies(woken)) changes.takeUp(body);
    },
  }));
  if (refusal !== undefined) throw refusal;
  return status;
}
