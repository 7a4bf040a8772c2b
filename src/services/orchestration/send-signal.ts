import { isRepeated, judgeSignal } from "../../engine/decide/match-signals.ts";
import type { Signal } from "../../schema/words/command.ts";
import type { FlowError } from "../../schema/words/errors.ts";
import type { EventOf } from "../../schema/words/event.ts";
import { unknownExecution } from "../errors.ts";
import { runJob } from "./jobs.ts";
import type { LiveExecution } from "./memory/load-execution.ts";
import type { SignalOutcome } from "./orchestrator.ts";
import type { OrchestratorParts } from "./parts.ts";
import type { RoundLoop } from "./round-loop.ts";
import { applyEvent, applyUndecided } from "./rounds/apply-event.ts";

/** {@link Orchestrator.signal}. Refused on a state that was just loaded only. */
export async function sendSignal(
  { store, now }: Pick<OrchestratorParts, "store" | "now">,
  roundLoop: Pick<RoundLoop, "push">,
  executionId: string,
  signal: Signal,
): Promise<SignalOutcome> {
  const judge = ({ state }: LiveExecution) => (isRepeated(state, signal) ? undefined : judgeSignal(state, signal));
  let outcome: SignalOutcome = { reached: 0, kept: false, duplicate: true };
  let refusal: FlowError | undefined;
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
      const { state, decisions } = changes.live;
      // What was accepted before, and is decided now, may have ended the execution.
      refusal = judge(changes.live);
      if (refusal !== undefined || isRepeated(state, signal)) return;
      const signalId = String(round.applyDeps.newId());
      const event: EventOf<"signal.received"> = {
        ...{ type: "signal.received", at: now() },
        signal_id: signalId,
        ...signal,
      };
      await applyEvent(changes, decisions.sealing?.event(event) ?? event, round.applyDeps);
      const woken = changes.woken();
      for (const body of woken.length === 0 ? [] : await store.commandBodies(woken)) changes.takeUp(body);
      const kept = state.signals?.kept.some((one) => one.signalId === signalId) === true;
      outcome = { reached: kept ? 0 : 1, kept, duplicate: false };
    },
  }));
  if (refusal !== undefined) throw refusal;
  return outcome;
}
