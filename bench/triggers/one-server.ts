import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { inheritedEnvironment } from "../../src/platform/config/config.ts";
import { startChild } from "../candidates/child.ts";
import { PROGRAM, readyAt } from "../candidates/flow.ts";
import { type HttpClient, openClient } from "../candidates/http-client.ts";
import { startBenchPostgres } from "../candidates/postgres.ts";
import { profiling } from "../candidates/profile.ts";

/** A server without workers: what it starts are steps without effects, which it runs itself. */
export interface OneServer {
  url: string;
  client: HttpClient;
  /** Its database, as the superuser. */
  sql: postgres.Sql;
  stop(): Promise<void>;
}

/**
 * Starts it as an installation would, with a PostgreSQL of its own.
 *
 * @param profile folder, and name in it, of the profile that the process leaves when it is stopped; absent: none.
 */
export async function startOneServer(profile?: { folder: string; name: string }): Promise<OneServer> {
  const stops: (() => Promise<void>)[] = [];
  const stop = async () => {
    for (const end of stops.splice(0)) await end();
  };
  try {
    const folder = await mkdtemp(join(tmpdir(), "flow-bench-"));
    stops.unshift(() => rm(folder, { recursive: true, force: true }));
    const database = await startBenchPostgres();
    stops.unshift(() => database.stop());
    const databaseUrl = await database.createDatabase("bench_triggers");
    const sql = postgres(databaseUrl, { max: 1, onnotice: () => undefined });
    stops.unshift(() => sql.end({ timeout: 1 }));
    const node = profile === undefined ? [] : profiling(profile.folder, profile.name);
    const server = startChild(process.execPath, [...node, PROGRAM, "serve", "--role", "server", "--port", "0"], {
      cwd: folder,
      env: {
        ...inheritedEnvironment(),
        ...{ FLOW_LOG_LEVEL: "warn", FLOW_HOME: folder, FLOW_DATABASE_URL: databaseUrl },
        FLOW_ENCRYPTION_KEYS: `bench:${randomBytes(32).toString("base64")}`,
      },
    });
    stops.unshift(() => server.stop());
    const url = await server.before("is not ready", readyAt(server));
    const client = openClient(url);
    stops.unshift(() => client.close());
    return { url, client, sql, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
