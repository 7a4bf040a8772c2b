import type { ExecutionState } from "../../engine/state/state.ts";
import { coalesce } from "../../platform/concurrency/coalesce.ts";
import type { ExecutionStore } from "../../ports/execution-store.ts";
import type { Command } from "../../schema/words/command.ts";
import { type FoldedExecution, foldStored, foldUpTo } from "../orchestration/memory/load-execution.ts";
import type { CommandProgram } from "../orchestration/memory/program-cache.ts";
import { commandFromLog, type Issue } from "./recall-command.ts";

/** An execution as it was committed. Use it at once: a later read of the same execution changes its state in place. */
export interface ExecutionView {
  state: ExecutionState;
  source: CommandProgram;
  /** The newest event folded into the state. */
  lastEventId: number;
}

/** Reads executions from the database. It shares no memory with the orchestrator and never waits for it. */
export interface ExecutionReader {
  /**
   * The execution up to its event `lastEventId`, which its row names, or further; undefined if it was deleted. Rejects with the
   * database's error.
   */
  read(executionId: string, lastEventId: number): Promise<ExecutionView | undefined>;
  /** The compiled playbook of a catalog entry. */
  program(catalogId: string): Promise<CommandProgram>;
  /** A command that has no row any more; see {@link commandFromLog}. One is made at a time: others wait for their turn. */
  command(issue: Issue): Promise<Command | undefined>;
  /** Forgets executions that were not read recently. */
  sweep(): void;
}

/** Folded executions kept in memory: a page that follows one of them reads only the events added since. */
const KEPT_MAX = 32;
/** Pages read an execution that they follow at least every few seconds. */
const KEPT_MS = 10_000;

/** A reader over a store. `programs` must not evict programs that the orchestrator has compiled. */
export function createExecutionReader(deps: {
  store: Pick<ExecutionStore, "find" | "eventsAfter" | "snapshotUpTo">;
  programs(catalogId: string): Promise<CommandProgram>;
  /** Milliseconds since 1970. */
  now(): number;
}): ExecutionReader {
  const { store, programs, now } = deps;
  const kept = new Map<string, { folded: FoldedExecution; usedAt: number }>();
  const sweep = () => {
    const before = now() - KEPT_MS;
    for (const [id, { usedAt }] of kept) if (kept.size > KEPT_MAX || usedAt <= before) kept.delete(id);
  };
  // One at a time for each execution: folding changes its state in place.
  const read = coalesce<number, ExecutionView | undefined>(async (executionId, lastEventIds) => {
    const known = kept.get(executionId)?.folded;
    // Kept again only after it was folded completely, as the most recently used.
    kept.delete(executionId);
    const folded = known ?? (await foldStored(store, executionId));
    if (folded === undefined) return undefined;
    await foldUpTo(store, executionId, folded, Math.max(...lastEventIds));
    kept.set(executionId, { folded, usedAt: now() });
    sweep();
    return { state: folded.state, source: await programs(folded.catalogId), lastEventId: folded.lastEventId };
  });
  let turn: Promise<unknown> = Promise.resolve();
  const command = (issue: Issue) => {
    const made = turn.then(() => commandFromLog({ store, programs }, issue));
    turn = made.catch(() => undefined);
    return made;
  };
  return { read, program: programs, command, sweep };
}
