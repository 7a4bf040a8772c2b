import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { startEmbeddedPostgres } from "../../../src/platform/postgres/embedded.ts";
import { findPostmaster } from "../../../src/platform/postgres/postmaster-file.ts";
import { isAlive } from "../../../src/platform/system/process.ts";
import { until } from "./until.ts";

/** A PostgreSQL of this test file alone, durable as in production, which a test may crash. Its role is no superuser. */
export interface OwnPostgres {
  readonly url: string;
  /** Ends it as `pg_ctl stop -m immediate` does: sessions are cut off, nothing is written; the next start recovers. */
  crash(): Promise<void>;
  /** Starts it again on the same port. */
  start(): Promise<void>;
}

/** Starts it. Call it at the top of a test file, once: it is gone when the file's tests are over, also where files share a process. */
export async function startOwnPostgres(): Promise<OwnPostgres> {
  const folder = await mkdtemp(join(tmpdir(), "flow-own-postgres-"));
  // Its user is another one than root.
  await chmod(folder, 0o755);
  const start = () => startEmbeddedPostgres({ folder: join(folder, "postgres"), log: () => undefined });
  let running = await start();
  const crash = async () => {
    const { pid } = (await findPostmaster(running.data)) ?? {};
    if (pid === undefined) throw new Error("PostgreSQL does not run");
    process.kill(pid, "SIGQUIT");
    await until("PostgreSQL has ended", () => !isAlive(pid));
  };
  after(async () => {
    // Not `stop`, which leaves it to those that are still connected: pools of the test may be closed after this.
    if ((await findPostmaster(running.data)) !== undefined) await crash();
    await rm(folder, { recursive: true, force: true });
  });
  return {
    url: running.url,
    crash,
    async start() {
      running = await start();
    },
  };
}
