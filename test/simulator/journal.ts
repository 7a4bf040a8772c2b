import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import type { SteppedClock } from "../../src/adapters/stepped-clock.ts";
import { type Advance, beginAdvance, continueAdvance } from "../../src/engine/advance.ts";
import { evolve } from "../../src/engine/evolve.ts";
import type { Program } from "../../src/engine/program.ts";
import { type ExecutionState, emptyState } from "../../src/engine/state.ts";
import { ReferenceNeeded } from "../../src/language/references.ts";
import type { Command } from "../../src/schema/command.ts";
import type { FlowEvent } from "../../src/schema/event.ts";
import type { Json } from "../../src/schema/json.ts";
import type { Faults } from "./faults.ts";
import type { Random } from "./random.ts";

/** What the server is made of, and what it is disturbed by. */
export interface ServerParts {
  program: Program;
  clock: SteppedClock;
  random: Random;
  faults: Faults;
  /** Stored payloads by reference; they last. */
  payloads: Map<string, Json>;
}

/** Something that is to be written at once: events with all that follows from them, and whatever else. */
export interface Transaction {
  /** Folds an event and what follows from it. */
  fold(event: FlowEvent): void;
  /** To be done when the transaction is written, and not otherwise. */
  onCommit(action: () => void): void;
}

/** The log of an execution, which lasts, and its state, which is folded from the log whenever the server has died. */
export interface Journal {
  readonly log: readonly FlowEvent[];
  readonly state: ExecutionState;
  readonly isDown: boolean;
  /** Milliseconds since 1970 by the server's clock, which jumps. */
  now(): number;
  newId(): string;
  jump(ms: number): void;
  /** All of it is written, or nothing. Undefined when the server is down, or died over it. */
  transact<T>(body: (transaction: Transaction) => T): T | undefined;
}

/** Opens an empty journal. `written` is called with all that a transaction wrote. */
export function openJournal(
  parts: ServerParts,
  written: (events: readonly FlowEvent[], commands: readonly Command[]) => void,
): Journal {
  const { clock, random, faults, payloads } = parts;
  const log: FlowEvent[] = [];
  let state = emptyState();
  let isDown = false;
  let offsetMs = 0;
  // Beyond 32 bits, where ids of an object's keys keep the order in which they were added.
  let ids = 5_000_000_000;
  const now = () => clock.now() + offsetMs;
  const newId = () => {
    ids += 1;
    return String(ids);
  };

  const die = (committed: ExecutionState | undefined) => {
    isDown = true;
    state = foldLog(log);
    if (committed !== undefined) assertSame(committed, state);
    clock.after(random.between(50, 6_000), () => {
      isDown = false;
    });
  };

  const commit = (steps: readonly Advance[], actions: readonly (() => void)[]) => {
    for (const { writes } of steps) for (const { ref, value } of writes) payloads.set(ref, value);
    const events = steps.flatMap((step) => step.events);
    log.push(...events);
    for (const action of actions) action();
    written(
      events,
      steps.flatMap((step) => step.commands),
    );
  };

  return {
    log,
    get state() {
      return state;
    },
    get isDown() {
      return isDown;
    },
    now,
    newId,
    jump(ms) {
      offsetMs += ms;
    },
    transact(body) {
      if (isDown) return undefined;
      const steps: Advance[] = [];
      const actions: (() => void)[] = [];
      const env = { now: now(), newId, env: {} };
      const answer = body({
        fold: (event) => steps.push(follow(state, event, parts, env)),
        onCommit: (action) => actions.push(action),
      });
      const hasChanges = steps.length > 0;
      if (hasChanges && faults.happens("beforeCommit")) {
        die(undefined);
        return undefined;
      }
      commit(steps, actions);
      if (hasChanges && faults.happens("afterCommit")) {
        die(state);
        return undefined;
      }
      return answer;
    },
  };
}

/** Follows an event in memory, with the payloads that the engine asks for. */
function follow(
  state: ExecutionState,
  event: FlowEvent,
  { program, payloads }: ServerParts,
  env: { now: number; newId(): string; env: Record<string, Json> },
): Advance {
  const loaded = new Map<string, Json>();
  const references = { get: (ref: string) => loaded.get(ref) };
  const progress = beginAdvance(state, event);
  for (;;) {
    try {
      continueAdvance(progress, state, program, { ...env, references });
      return progress;
    } catch (error) {
      if (!(error instanceof ReferenceNeeded)) throw error;
      const payload = payloads.get(error.ref);
      assert.ok(payload !== undefined, `The engine reads ${error.ref}, which was never stored`);
      loaded.set(error.ref, payload);
    }
  }
}

/** The state that the log gives, by way of JSON as it would be read from a table. */
export function foldLog(log: readonly FlowEvent[]): ExecutionState {
  const events: FlowEvent[] = JSON.parse(JSON.stringify(log));
  return events.reduce(evolve, emptyState());
}

/** Invariant 2: the state in memory is what the log gives. */
export function assertSame(live: ExecutionState, folded: ExecutionState): void {
  if (isDeepStrictEqual(live, folded)) return;
  assert.deepEqual(live, folded, "The state differs from the fold of the log");
}
