import type { ExecutionState } from "../../engine/state/state.ts";
import { coalesce } from "../../platform/concurrency/coalesce.ts";
import type { ExecutionStore } from "../../ports/execution-store.ts";
import type { Command } from "../../schema/words/command.ts";
import { type FoldedExecution, foldStored, foldUpTo, stateAt } from "../orchestration/memory/load-execution.ts";
import type { CommandProgram } from "../orchestration/memory/program-cache.ts";
import { commandFromLog, type Issue } from "./recall-command.ts";

/** An execution as it was committed. Use it at once: a later read of the same execution changes its state in place. */
export interface ExecutionView {
  state: ExecutionState;
  source: CommandProgram;
  /** The newest event folded into the state. */
  lastEventId: number;
}

/** An execution as it was after one of its events. Nothing changes it later. */
export interface PastView extends ExecutionView {
  /** When the event happened, RFC 3339. */
  at: string;
}

/** Reads executions from the database. It shares no memory with the orchestrator and never waits for it. */
export interface ExecutionReader {
  /**
   * The execution up to its event `lastEventId`, which its row names, or further; undefined if it was deleted. Rejects with the
   * database's error.
   */
  read(executionId: string, lastEventId: number): Promise<ExecutionView | undefined>;
  /**
   * The execution as it was after one of its events; undefined if it has no such event. One is folded at a time: others wait for their
   * turn.
   */
  past(executionId: string, eventId: number): Promise<PastView | undefined>;
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
  const inTurn = () => {
    let turn: Promise<unknown> = Promise.resolve();
    return <T>(work: () => Promise<T>) => {
      const done = turn.then(work);
      turn = done.catch(() => undefined);
      return done;
    };
  };
  const [commandTurn, pastTurn] = [inTurn(), inTurn()];
  const command = (issue: Issue) => commandTurn(() => commandFromLog({ store, programs }, issue));
  const past = (executionId: string, eventId: number) =>
    pastTurn(async (): Promise<PastView | undefined> => {
      const found = await stateAt(store, executionId, eventId);
      if (found === undefined) return undefined;
      const { state, at, lastEventId, catalogId } = found;
      return { state, at, lastEventId, source: await programs(catalogId) };
    });
  return { read, past, program: programs, command, sweep };
}
