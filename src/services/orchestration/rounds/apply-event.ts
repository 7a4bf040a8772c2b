import { setImmediate } from "node:timers/promises";
import { type Advance, advanceOf, beginAdvance, decideNext } from "../../../engine/decide/advance.ts";
import type { EngineEnv } from "../../../engine/env.ts";
import { evolve } from "../../../engine/state/evolve.ts";
import type { Keeping } from "../../../engine/state/results.ts";
import { ReferenceNeeded } from "../../../language/views/references.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { FlowEvent } from "../../../schema/words/event.ts";
import type { JsonObject } from "../../../schema/words/json.ts";
import type { IterationPace } from "../memory/iteration-pace.ts";
import type { ChangeSet } from "./change-set.ts";

/** What it takes to apply an event. */
export interface ApplyDeps {
  /** Milliseconds since 1970. */
  now(): number;
  newId(): number;
  /** The allow-listed environment, readable as `env` in templates. */
  env: JsonObject;
  /** Lets other calls have their turn between decisions. */
  turns: Turns;
  /** How many iterations of a loop share a command. */
  pace: IterationPace;
  /** Stores a payload that the engine has moved out of the state, before its events are written. */
  save(ref: string, json: string, keeping?: Keeping): Promise<unknown>;
}

/** Folds an event, decides what follows, and adds all of it to the change set. Returns the number of commands issued. */
export async function applyEvent(changes: ChangeSet, event: FlowEvent, deps: ApplyDeps): Promise<number> {
  if (event.type === "task.done" && event.iteration !== undefined) {
    const step = changes.live.source.program.steps.get(event.step)?.step;
    if (step !== undefined) deps.pace.note(step, event);
  }
  return await finish(changes, beginAdvance(changes.live.state, event), [], deps);
}

/** Folds events and adds them without deciding what follows: {@link applyUndecided} does that later. */
export function foldOnly(changes: ChangeSet, events: readonly FlowEvent[]): number[] {
  const ids: number[] = [];
  for (const event of events) {
    evolve(changes.live.state, event);
    const eventId = changes.event(event);
    ids.push(eventId);
    changes.live.undecided.push({ event, eventId });
  }
  return ids;
}

/** Decides what follows from the events that were only folded so far. Returns the number of commands issued. */
export async function applyUndecided(changes: ChangeSet, deps: ApplyDeps): Promise<number> {
  const { undecided } = changes.live;
  if (undecided.length === 0) return 0;
  changes.live.undecided = [];
  const events = undecided.map(({ event }) => event);
  const progress = advanceOf(events);
  const written = undecided.map(({ eventId }) => eventId);
  return await finish(changes, progress, written, deps);
}

/** @param written known ids of those first events that are already in the log. */
async function finish(
  changes: ChangeSet,
  progress: Advance,
  written: readonly (number | undefined)[],
  deps: ApplyDeps,
): Promise<number> {
  const { state, source, references, decisions } = changes.live;
  const { sealing } = decisions;
  const env: EngineEnv = {
    ...{ now: deps.now(), newId: () => String(deps.newId()), references, env: deps.env, sealing },
    iterationsAtOnce: deps.pace.atOnce,
  };
  const decide = () => decideNext(progress, state, source.program, env);
  for (let goesOn = true; goesOn; ) {
    try {
      goesOn = decide();
    } catch (error) {
      // Usually nothing is missing. A missing payload is loaded and the decision repeated.
      if (!(error instanceof ReferenceNeeded)) throw error;
      goesOn = await references.evaluate(decide);
    }
    if (deps.turns.isOver()) await deps.turns.next();
  }
  for (const { ref, value, keeping } of progress.writes) {
    await deps.save(ref, await decisions.payload(value, keeping?.sensitive === true), keeping);
  }
  const ids = [...written];
  for (const [index, event] of progress.events.entries()) {
    if (index < written.length) continue;
    const cause = progress.causes[index] ?? null;
    ids.push(changes.event(event, cause === null ? undefined : ids[cause]));
  }
  for (const command of progress.commands) changes.issue(command);
  return progress.commands.length;
}

/** How long a server decides before timers and sockets have their turn, milliseconds. One more decision may follow. */
const TURN_MS = 20;

/** Turns of 20 ms for decisions: one that finds its turn over waits for the event loop to come round. */
export interface Turns {
  isOver(): boolean;
  /** The event loop has come round: a turn begins. */
  begin(): void;
  next(): Promise<void>;
}

/** A time in milliseconds that measures how long this process is at work. */
export function busyOf(clock: Pick<Clock, "busy">): number {
  return clock.busy?.() ?? performance.now();
}

/** Begins the first turn. */
export function createTurns(clock: Pick<Clock, "busy">): Turns {
  let began = busyOf(clock);
  const begin = () => {
    began = busyOf(clock);
  };
  return {
    isOver: () => busyOf(clock) - began > TURN_MS,
    begin,
    async next() {
      await setImmediate();
      begin();
    },
  };
}
