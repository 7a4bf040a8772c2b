import type { Database } from "../../repositories/database/database.ts";
import { findMoves, hasOtherServer } from "../../repositories/executions/execution-moves.ts";
import type { Orchestrator } from "../orchestration/orchestrator.ts";

/** Detects changes made by other servers when there is no broker. */
export interface Elsewhere {
  /** Checks once the executions that have watchers on this server. */
  look(): Promise<void>;
}

/** What {@link createElsewhere} needs. */
export interface ElsewhereDeps {
  database: Database;
  orchestrator: Pick<Orchestrator, "moved" | "watched">;
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
/** Executions checked in one look; if there are more, each look checks a different part. */
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
  let others = { areThere: false, askAt: 0 };
  let notBefore = 0;
  let offset = 0;
  return {
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
  };
}
