import { startExecution } from "../../../src/engine/decide/start.ts";
import { openDecisions } from "../../../src/engine/sealing/decision-sealing.ts";
import { evolve } from "../../../src/engine/state/evolve.ts";
import { emptyState } from "../../../src/engine/state/state.ts";
import { loadedReferences } from "../../../src/language/template/loaded-references.ts";
import type { Command } from "../../../src/schema/words/command.ts";
import type { FlowEvent } from "../../../src/schema/words/event.ts";
import type { LiveExecution } from "../../../src/services/orchestration/memory/load-execution.ts";
import { advance } from "../../engine/support/advance.ts";
import { compile } from "../../engine/support/playbook.ts";

/** An execution in memory that has just begun, its first commands claimed by worker `w1`. */
export interface BegunExecution {
  live: LiveExecution;
  commands: readonly Command[];
  /** Folds an event, without a look at what follows. */
  fold(event: FlowEvent): void;
}

/** Begins the playbook with these steps. Ids of commands and step runs are 1, 2, … in the order in which they are given. */
export function beginLive(text: string): BegunExecution {
  const program = compile(text);
  const references = loadedReferences({ load: () => Promise.reject(new Error("There is no payload")) });
  let ids = 0;
  const newId = () => {
    ids += 1;
    return String(ids);
  };
  const env = { now: 0, newId, references, env: {} };
  const state = emptyState();
  const first = startExecution({ executionId: "7", catalogId: "1", input: {} }, program, env);
  const { commands } = advance(state, first, program, env);
  const live: LiveExecution = {
    state,
    source: { program, file: "p@1", path: "p", version: 1 },
    catalogId: "1",
    trustDomain: "",
    lastEventId: 100,
    undecided: [],
    attached: new Map(),
    issued: new Map(),
    marks: new Map(),
    tally: new Map(),
    references,
    decisions: openDecisions({ load: () => Promise.reject(new Error("There is no payload")) }),
    eventsSinceSnapshot: 0,
  };
  const fold = (event: FlowEvent) => void evolve(state, event);
  for (const { command_id, step } of commands) {
    fold({ type: "command.claimed", at: 0, command_id, step, attempt: 1, worker: "w1" });
  }
  return { live, commands, fold };
}
