import { type Advance, beginAdvance, continueAdvance } from "../../../src/engine/decide/advance.ts";
import type { EngineEnv } from "../../../src/engine/env.ts";
import type { Program } from "../../../src/engine/program/program.ts";
import type { ExecutionState } from "../../../src/engine/state/state.ts";
import type { FlowEvent } from "../../../src/schema/words/event.ts";

/** Folds an event and all that follows from it into the state. */
export function advance(state: ExecutionState, event: FlowEvent, program: Program, env: EngineEnv): Advance {
  const progress = beginAdvance(state, event);
  continueAdvance(progress, state, program, env);
  return progress;
}
