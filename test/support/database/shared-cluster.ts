import { once } from "node:events";
import postgres from "postgres";
import { ACCESS, createTemplates, startCluster } from "./cluster.ts";

/*
 * A process: the PostgreSQL server that all files of a test run share. It prints its port and the databases of which each file
 * copies its own, and ends when its standard input does. So no server is left, however the run ends.
 * Databases are named after the process that made them, and dropped soon after that has ended.
 */

const SWEEP_MS = 3_000;

const cluster = await startCluster();
const templates = await createTemplates(cluster.port);
const admin = postgres({ ...ACCESS, port: cluster.port, database: "postgres", max: 1, onnotice: () => undefined });
process.stdout.write(`${JSON.stringify({ port: cluster.port, templates })}\n`);

let sweeping = Promise.resolve();
const sweeps = setInterval(() => {
  // A database that cannot be dropped now is dropped by a later sweep, or goes with the server.
  sweeping = sweeping.then(sweep).catch(() => undefined);
}, SWEEP_MS);
process.stdin.resume();
await once(process.stdin, "end");
clearInterval(sweeps);
await sweeping;
await admin.end();
await cluster.stop();

async function sweep(): Promise<void> {
  const rows = await admin<{ datname: string }[]>`select datname from pg_database where datname like 'test\_%'`;
  for (const { datname } of rows) {
    const [, pid = ""] = /^test_(\d+)_/.exec(datname) ?? [];
    if (!isRunning(Number(pid))) await admin.unsafe(`drop database if exists ${datname} with (force)`);
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
