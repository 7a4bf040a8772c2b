import { judgeOverride } from "../../engine/decide/judge-override.ts";
import { knownStep, type StepStatus } from "../../engine/state/state.ts";
import type { FlowError } from "../../schema/words/errors.ts";
import type { EventOf } from "../../schema/words/event.ts";
import { unknownExecution } from "../errors.ts";
import { runJob } from "./jobs.ts";
import type { LiveExecution } from "./memory/load-execution.ts";
import type { RoundLoop } from "./round-loop.ts";
import { applyEvent, applyUndecided } from "./rounds/apply-event.ts";

/**
 * Ends a step or an iteration as a person says. Refused on a state that was just loaded only: what one server has in memory may be older
 * than what another has written.
 */
export async function overrideStep(
  roundLoop: Pick<RoundLoop, "push">,
  executionId: string,
  event: EventOf<"step.overridden">,
): Promise<StepStatus> {
  let status: StepStatus = "PENDING";
  let refusal: FlowError | undefined;
  const judge = ({ state, source }: LiveExecution) => judgeOverride(state, source.program, event);
  await runJob(roundLoop, [executionId], (base) => ({
    ...base,
    check(round) {
      const live = round.changes(executionId)?.live;
      const why = live === undefined ? unknownExecution(executionId) : judge(live);
      if (why !== undefined) throw why;
    },
    async apply(round) {
      const changes = round.changes(executionId);
      if (changes === undefined) return;
      await applyUndecided(changes, round.applyDeps);
      // What was accepted before, and is decided now, may have ended it.
      refusal = judge(changes.live);
      if (refusal !== undefined) return;
      await applyEvent(changes, changes.live.decisions.sealing?.event(event) ?? event, round.applyDeps);
      status = knownStep(changes.live.state, event.step)?.status ?? "PENDING";
    },
  }));
  if (refusal !== undefined) throw refusal;
  return status;
}
