import { countWaiters, isRepeated, judgeSignal, mayWaitFor } from "../../engine/decide/match-signals.ts";
import { isTerminal } from "../../engine/state/state.ts";
import type { Signal } from "../../schema/words/command.ts";
import { FlowError } from "../../schema/words/errors.ts";
import type { EventOf } from "../../schema/words/event.ts";
import { unknownExecution } from "../errors.ts";
import { runJob } from "./jobs.ts";
import type { LiveExecution } from "./memory/load-execution.ts";
import type { EveryonesSignal, SignalOutcome } from "./orchestrator.ts";
import type { OrchestratorParts } from "./parts.ts";
import type { RoundLoop } from "./round-loop.ts";
import { applyEvent, applyUndecided } from "./rounds/apply-event.ts";
import type { ChangeSet } from "./rounds/change-set.ts";

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
      await goOn(store, changes);
      const kept = state.signals?.kept.some((one) => one.signalId === signalId) === true;
      outcome = { reached: kept ? 0 : 1, kept, duplicate: false };
    },
  }));
  if (refusal !== undefined) throw refusal;
  return outcome;
}

/** Nothing of the execution waits for the signal. */
class NoWaiter extends FlowError {
  constructor(executionId: string, { name }: Signal) {
    super("CONFLICT", `Nothing of execution ${executionId} waits for signal '${name}'`);
  }
}

/** {@link Orchestrator.signalWaiters}. */
export async function signalWaiters(
  { store, now, env }: Pick<OrchestratorParts, "store" | "now" | "env">,
  roundLoop: Pick<RoundLoop, "push">,
  executionId: string,
  { signalId, at, atMost = Number.POSITIVE_INFINITY, ...signal }: EveryonesSignal,
): Promise<number> {
  let reached = 0;
  const known = { ...signal, signal_id: signalId, wakes: 0 };
  try {
    await runJob(roundLoop, [executionId], (base) => ({
      ...base,
      check(round) {
        reached = 0;
        const state = round.changes(executionId)?.live.state;
        // Refused only on a state that was just loaded: what is in memory may be older than the row.
        if (state === undefined || !(mayWaitFor(state, signal) || isRepeated(state, known)))
          throw new NoWaiter(executionId, signal);
      },
      async apply(round) {
        const changes = round.changes(executionId);
        if (changes === undefined) return;
        await applyUndecided(changes, round.applyDeps);
        const { state, source, references, decisions } = changes.live;
        // The server that told it before has not come to say so.
        if (isRepeated(state, known)) {
          reached = 1;
          return;
        }
        const counting = { now: now(), newId: () => "", references, env, sealing: decisions.sealing };
        const meant = { ...signal, signalId, at };
        const waiters = isTerminal(state.status)
          ? 0
          : await references.evaluate(() => countWaiters(state, meant, source.program, counting));
        reached = Math.min(waiters, atMost);
        if (reached === 0) return;
        const event: EventOf<"signal.received"> = {
          ...{ type: "signal.received", at: now(), signal_id: signalId },
          ...signal,
          wakes: reached,
        };
        await applyEvent(changes, decisions.sealing?.event(event) ?? event, round.applyDeps);
        await goOn(store, changes);
      },
    }));
  } catch (error) {
    if (!(error instanceof NoWaiter)) throw error;
  }
  return reached;
}

/** The round goes on with the commands that the signal has woken. */
async function goOn(store: OrchestratorParts["store"], changes: ChangeSet): Promise<void> {
  const woken = changes.woken();
  for (const body of woken.length === 0 ? [] : await store.commandBodies(woken)) changes.takeUp(body);
}
