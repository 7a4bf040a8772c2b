import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** Set for all test files of a run: see `support/database/postgres.ts`. */
const VARIABLE = "FLOW_TEST_POSTGRES";

/** Starts the PostgreSQL server that the test files of this run share, and tells them of it. Gives what stops it. */
export async function startSharedDatabase(): Promise<() => Promise<void>> {
  // In a group of its own: Ctrl-C ends the tests first. It ends by itself when its input is closed, as this process's end does.
  const server = spawn(process.execPath, [join(import.meta.dirname, "../support/database/shared-cluster.js")], {
    detached: true,
    stdio: ["pipe", "pipe", "inherit"],
  });
  const exited = once(server, "exit");
  const lines = createInterface({ input: server.stdout });
  const started = await Promise.race([once(lines, "line"), exited.then(() => undefined)]);
  if (started === undefined) throw new Error("The PostgreSQL server of the tests did not start; see above.");
  process.env[VARIABLE] = String(started[0]);
  return async () => {
    delete process.env[VARIABLE];
    server.stdin.end();
    await exited;
  };
}
