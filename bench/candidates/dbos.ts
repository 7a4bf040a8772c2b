import { type Candidate, RUN_MAX_MS } from "./candidate.ts";
import { forkPeer } from "./forked-peer.ts";
import type { BenchPostgres } from "./postgres.ts";

const DATABASE = "bench_dbos";

/** DBOS with its own database. It is a library: one process starts the workflows and runs their steps. */
export async function startDbos(server: BenchPostgres): Promise<Candidate> {
  const { child } = await forkPeer("dbos.mjs", [await server.createDatabase(DATABASE)]);
  const waiting = new Map<number, (error?: string) => void>();
  child.process.on("message", ({ id, error }: { id: number; error?: string }) => waiting.get(id)?.(error));
  child.process.on("close", () => {
    for (const tell of waiting.values()) tell("its process ended");
  });
  let last = 0;
  const run: Candidate["run"] = (work) =>
    new Promise((resolve, reject) => {
      last += 1;
      const id = last;
      const tell = (error?: string) => {
        clearTimeout(timer);
        waiting.delete(id);
        if (error === undefined) resolve();
        else reject(new Error(`DBOS, ${JSON.stringify(work)}: ${error}`));
      };
      const timer = setTimeout(() => tell(`not within ${RUN_MAX_MS / 1_000} s`), RUN_MAX_MS);
      waiting.set(id, tell);
      child.process.send({ id, work });
    });
  return { name: "DBOS", database: DATABASE, run, stop: () => child.stop() };
}
