import type { Database } from "../../repositories/database/database.ts";
import { findMoves, hasOtherServer } from "../../repositories/executions/execution-moves.ts";
import type { Orchestrator } from "../orchestration/orchestrator.ts";

/** Detects changes of watched executions that no notice has reported. */
export interface Elsewhere {
  /** Resolves as soon as an execution has a watcher on this server, or the signal is aborted: before, there is nothing to look at. */
  needed(signal: AbortSignal): Promise<void>;
  /** Checks once the executions that have watchers on this server, if another server is there and no broker. */
  look(): Promise<void>;
  /**
   * Checks once all executions that have watchers on this server, however they were changed: the last resort for notices that
   * were lost. One statement for a thousand executions, where each of a thousand callers would make its own.
   */
  lookAtAll(): Promise<void>;
}

/** What {@link createElsewhere} needs. */
export interface ElsewhereDeps {
  database: Database;
  orchestrator: Pick<Orchestrator, "moved" | "wake" | "watched" | "whenWatched">;
  /** Name of this server. */
  server: string;
  /** Whether a broker delivers other servers' notices. */
  isTold(): boolean;
  /** Milliseconds. */
  now(): number;
}

/** Time between two looks for other servers, milliseconds. */
const SERVERS_MS = 1_000;
/** A server without a sign of life for this long counts as dead. */
const SILENT_MS = 60_000;
/** Executions checked with one statement; if there are more, each look checks a different part. */
const LOOKED_AT_MAX = 1_000;
/** Pause for each execution checked: a thousand watched executions are checked ten times a second. */
const PAUSE_MS = 0.1;

/**
 * Without a broker this server gets no notice when another server moves an execution. It queries the database for the
 * executions that callers here wait for, all with one statement over the primary key. Unlike database notifications this writes
 * nothing on the hot path, and a server that is alone or has a broker queries nothing.
 */
export function createElsewhere({ database, orchestrator, server, isTold, now }: ElsewhereDeps): Elsewhere {
  let seen = new Map<string, number>();
  let seenOfAll = new Map<string, number>();
  let others = { areThere: false, askAt: 0 };
  let notBefore = 0;
  let offset = 0;
  return {
    needed: orchestrator.whenWatched,
    async look() {
      if (isTold() || now() < notBefore) return;
      const watched = orchestrator.watched();
      if (watched.length === 0) return;
      if (now() >= others.askAt) {
        others = { areThere: await hasOtherServer(database, server, SILENT_MS), askAt: now() + SERVERS_MS };
      }
      if (!others.areThere) return;
      offset = offset < watched.length ? offset : 0;
      const part = watched.slice(offset, offset + LOOKED_AT_MAX);
      offset += LOOKED_AT_MAX;
      notBefore = now() + part.length * PAUSE_MS;
      const kept = new Map(watched.map((id) => [id, seen.get(id) ?? 0]));
      for (const { executionId, lastEventId, hasEnded } of await findMoves(database, part)) {
        if (kept.get(executionId) === lastEventId) continue;
        kept.set(executionId, lastEventId);
        orchestrator.moved(executionId, { lastEventId, hasEnded });
      }
      seen = kept;
    },
    async lookAtAll() {
      const watched = orchestrator.watched();
      const kept = new Map<string, number>();
      for (let start = 0; start < watched.length; start += LOOKED_AT_MAX) {
        const part = watched.slice(start, start + LOOKED_AT_MAX);
        const moves = new Map((await findMoves(database, part)).map((move) => [move.executionId, move]));
        for (const executionId of part) {
          const move = moves.get(executionId);
          if (move !== undefined) kept.set(executionId, move.lastEventId);
          // A deleted execution has no row: its watchers find that out.
          if (move === undefined) orchestrator.wake(executionId, true);
          else if (seenOfAll.get(executionId) !== move.lastEventId) orchestrator.wake(executionId, move.hasEnded);
        }
      }
      seenOfAll = kept;
    },
  };
}
