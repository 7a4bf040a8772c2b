import { hostname } from "node:os";
import type { Database } from "../../repositories/database/database.ts";
import { reserveIds } from "../../repositories/database/ids.ts";
import { registerRuntime, signOffServer, touchServer } from "../../repositories/workers/workers.ts";

/** Registers this server among the servers of its database, for operators. Nothing depends on it. */
export interface Presence {
  /** One sign of life. */
  say(): Promise<void>;
  end(): Promise<void>;
}

/** The presence of this process. `name` is its own, and not that of the one after its restart. */
export function openPresence(database: Database, { name, version }: { name: string; version: string }): Presence {
  return {
    async say() {
      if (await touchServer(database, name)) return;
      const [runtimeId = ""] = await reserveIds(database, 1);
      await registerRuntime(database, {
        runtimeId,
        kind: "server",
        name,
        capacity: 0,
        labels: {},
        capabilities: [],
        about: { pid: process.pid, hostname: hostname(), version },
      });
    },
    end: () => signOffServer(database, name),
  };
}
