import type { Command } from "../../schema/words/command.ts";
import type { FlowEvent } from "../../schema/words/event.ts";
import type { Json } from "../../schema/words/json.ts";
import type { EngineEnv } from "../env.ts";
import type { Program } from "../program/program.ts";
import { evolve } from "../state/evolve.ts";
import type { ExecutionState } from "../state/state.ts";
import { decide } from "./decide.ts";
import type { StoreWrite } from "./loop.ts";

/** The consequences of one event, and how far they have been decided. */
export interface Advance {
  /** The event itself first, then the events that follow from it, in order. */
  events: FlowEvent[];
  /** For each of `events` the index of the event that caused it; null for an external event. */
  causes: (number | null)[];
  commands: Command[];
  /** Payloads to store before the events are committed. */
  writes: StoreWrite[];
  /** Index of the first event whose consequences were not decided yet. */
  undecided: number;
}

/**
 * Most events that one event may lead to. No valid playbook comes near it: a cascade is as long as the steps that are skipped
 * without a worker in between.
 */
export const CASCADE_MAX = 1_000_000;

/** Folds the event alone. {@link continueAdvance} decides its consequences. */
export function beginAdvance(state: ExecutionState, event: FlowEvent): Advance {
  evolve(state, event);
  return { events: [event], causes: [null], commands: [], writes: [], undecided: 0 };
}

/**
 * Decides event after event. Each decided event is folded before the next decision, so that no decision is made on an outdated
 * state. Throws `ReferenceNeeded` if a decision lacks a payload. Then nothing of that decision is folded: load the payload and
 * call again with the same `progress`.
 */
export function continueAdvance(progress: Advance, state: ExecutionState, program: Program, env: EngineEnv): void {
  const { events, causes, commands, writes } = progress;
  const staged = withStaged(env, writes);
  for (; progress.undecided < events.length; progress.undecided += 1) {
    const current = events[progress.undecided];
    if (current === undefined) break;
    const decision = decide(state, current, program, staged);
    for (const decided of decision.events) {
      // Before folding: values from the state go into commands too.
      const next = env.sealing?.event(decided) ?? decided;
      evolve(state, next);
      events.push(next);
      causes.push(progress.undecided);
    }
    commands.push(...decision.commands);
    for (const write of decision.writes) writes.push({ ...write, value: sealedWrite(write, env) });
    if (events.length > CASCADE_MAX) throw new Error(`One event led to more than ${CASCADE_MAX} others`);
  }
}

/** A result that is sensitive as a whole is also sealed as a whole, by the store. */
function sealedWrite({ value, keeping }: StoreWrite, { sealing }: EngineEnv): Json {
  return sealing === undefined || keeping?.sensitive === true ? value : sealing.value(value);
}

/** Lets this advance read the payloads that it is about to store. */
function withStaged(env: EngineEnv, writes: readonly StoreWrite[]): EngineEnv {
  const stagedAt = (ref: string): Json | undefined => {
    const staged = writes.find((write) => write.ref === ref)?.value;
    return staged === undefined || env.sealing === undefined ? staged : env.sealing.open(staged);
  };
  const get = (ref: string): Json | undefined => env.references.get(ref) ?? stagedAt(ref);
  return { ...env, references: { get } };
}
