import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { Fleet } from "./fleet.ts";

/** Workers that hold commands for long, as far as a service can tell: their heartbeats. */
export interface Holders {
  /** Ends the heartbeats. Rejects if one of them was refused, or a command was lost. */
  stop(): Promise<void>;
}

/** As flow's worker waits. */
const BEAT_MS = 15_000;

/** Sends the heartbeats of these workers, with everything that they hold, as real ones would: each is held by the server until the next. */
export async function startHolders({ sql, clients }: Fleet, names: readonly string[]): Promise<Holders> {
  const stop = new AbortController();
  setMaxListeners(0, stop.signal);
  const beats = names.map(async (name, index) => {
    const client = clients[index % clients.length];
    const rows = await sql<{ id: string; attempt: number }[]>`
      select command_id as id, attempt from flow.command where worker = ${name} and status = 'CLAIMED'`;
    const running = rows.map(({ id, attempt }) => ({ command_id: id, attempt }));
    // Spread, as processes that were started one after the other are.
    const beat = { name, running, wait_ms: BEAT_MS };
    await client?.post("/api/worker/pool/heartbeat", { ...beat, wait_ms: 0 });
    await sleep((BEAT_MS * index) / names.length, undefined, { signal: stop.signal }).catch(() => undefined);
    while (!stop.signal.aborted) {
      // The answer, as its contract has it.
      const answer = (await client?.post("/api/worker/pool/heartbeat", beat)) as { cancel: string[]; lost: string[] };
      if (answer.cancel.length + answer.lost.length > 0) {
        throw new Error(`${name} was told to stop: ${JSON.stringify(answer).slice(0, 200)}`);
      }
    }
  });
  const ended = Promise.all(beats);
  ended.catch(() => undefined);
  return {
    async stop() {
      stop.abort();
      await ended;
    },
  };
}
