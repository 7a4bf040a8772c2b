import { after } from "node:test";
import type { Database } from "../../../src/repositories/database/database.ts";
import { open } from "../../repositories/service-database.ts";
import { createServedDatabase } from "../../support/database/postgres.ts";
import { ownDatabase } from "../../support/engine/key-ring.ts";
import { folderWith } from "../../support/service/cli-process.ts";
import {
  type ProcessOwner,
  type ServerProcess,
  type ServiceProcess,
  startServerProcess,
  startWorkerProcess,
} from "../../support/service/service-process.ts";
import { type Client, createClient } from "./client.ts";
import { type Effects, startEffects } from "./effects.ts";
import { PAIR, PARENT, WORK } from "./playbooks.ts";
import { assertSound, type Expected } from "./sound.ts";

/** A database, and the processes of a service that a test starts on it. */
export interface Stand {
  readonly folder: string;
  readonly database: Database;
  readonly databaseUrl: string;
  readonly effects: Effects;
  /** A server with the test's settings. */
  server(environment?: NodeJS.ProcessEnv, port?: number): Promise<ServerProcess>;
  /** A worker of that server. */
  worker(server: { url: string }, name: string, environment?: NodeJS.ProcessEnv): Promise<ServiceProcess>;
  /** A caller; the stand's documents are registered. */
  client(...servers: { url: string }[]): Promise<Client>;
  /** Starts so many runs of a document. */
  start(client: Client, path: string, count: number): Promise<string[]>;
  /** The same database and documents; what is started with it is gone after that test. */
  during(context: ProcessOwner): Stand;
  /** Waits for the ends of executions, and checks all that must hold. */
  finish(client: Client, executionIds: readonly string[], expected: Expected): Promise<void>;
}

/**
 * Times that make a lost worker's command come back within two seconds and not two minutes. A machine that is busy may take a
 * live worker for a lost one with these: that must do no harm.
 */
export const SHORT: NodeJS.ProcessEnv = {
  FLOW_COMMAND_CLAIM_LEASE_SECONDS: "1",
  FLOW_COMMAND_REAPER_WORKER_STALE_SECONDS: "1",
  FLOW_COMMAND_REAPER_INTERVAL_SECONDS: "0.2",
  FLOW_COMMAND_REAPER_PENDING_RETRY_SECONDS: "0.5",
  FLOW_WORKER_HEARTBEAT_SECONDS: "0.2",
  FLOW_COMMAND_LOST_LIMIT: "1000",
};

/** Times of production, where no lease can end within a test. */
export const LONG: NodeJS.ProcessEnv = { FLOW_WORKER_HEARTBEAT_SECONDS: "0.2" };

// Here and not at the first use: it is to end with the file, not with the first test.
const effects = startEffects();

/** The owner of processes that all tests of a file use. Ask for it at the top of the file. */
export function ownedByFile(): ProcessOwner {
  const closers: (() => unknown)[] = [];
  after(async () => {
    for (const close of closers.reverse()) await close();
  });
  return {
    after: (close) => void closers.push(close as () => unknown),
    diagnostic: (message) => void process.stderr.write(`${message}\n`),
  };
}

/** A stand; its processes are gone after the test, or after the file. `databaseUrl` instead of a database of its own. */
export async function openStand(
  context: ProcessOwner,
  settings: NodeJS.ProcessEnv = SHORT,
  databaseUrl?: string,
): Promise<Stand> {
  const url = databaseUrl ?? (await createServedDatabase()).url;
  const folder = await folderWith(context, {});
  const place = { folder, database: open(url), databaseUrl: url, effects: await effects };
  return standAt(place, context, settings);
}

type Place = Pick<Stand, "folder" | "database" | "databaseUrl" | "effects">;

function standAt(place: Place, context: ProcessOwner, settings: NodeJS.ProcessEnv): Stand {
  const { folder, databaseUrl: url } = place;
  return {
    ...place,
    during: (other) => standAt(place, other, settings),
    server: (environment, port) => {
      // Most tests look at what becomes of commands, and use the simplest.
      const all = { ...ownDatabase(url), FLOW_PURE_STEPS: "workers", ...settings, ...environment };
      return startServerProcess(context, { folder, environment: all }, port);
    },
    worker: (server, name, environment) =>
      startWorkerProcess(context, {
        folder,
        environment: {
          FLOW_SERVER_URL: server.url,
          FLOW_WORKER_NAME: name,
          FLOW_WORKER_TOOLS: "all",
          FLOW_HTTP_ALLOW_PRIVATE: "all",
          FLOW_WORKER_CAPACITY: "8",
          ...settings,
          ...environment,
        },
      }),
    async client(...servers) {
      const client = createClient(...servers.map((server) => server.url));
      for (const content of [WORK, PARENT, PAIR]) await client.register(content);
      return client;
    },
    start: (client, path, count) =>
      Promise.all(Array.from({ length: count }, () => client.start(path, { effects: place.effects.url }))),
    async finish(client, executionIds, expected) {
      const runs = await Promise.all(executionIds.map((id) => client.watch(id)));
      for (const run of runs) await assertSound({ ...place, client }, run, expected);
    },
  };
}
