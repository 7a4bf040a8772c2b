import { PassThrough } from "node:stream";
import { loadConfig } from "../../../src/platform/config/config.ts";
import { createLifecycle } from "../../../src/platform/system/lifecycle.ts";
import { createLogger } from "../../../src/platform/telemetry/logger.ts";
import { startWorker } from "../../../src/roles/worker/worker.ts";
import type { FakeServer } from "./fake-server.ts";

/** A worker in this process. */
export interface TestWorker {
  /** Drains and stops; called after the test at the latest. */
  stop(): Promise<void>;
  /** Lines of its log so far. */
  log(): Record<string, unknown>[];
  /** Resolves when a line's message begins with this. */
  untilLog(start: string): Promise<void>;
  registered: Promise<void>;
}

/** Starts the role against a server, named `w`, with what `environment` adds. */
export function startTestWorker(
  server: Pick<FakeServer, "url" | "users">,
  environment: NodeJS.ProcessEnv = {},
): TestWorker {
  const config = loadConfig({
    FLOW_SERVER_URL: server.url,
    FLOW_WORKER_NAME: "w",
    FLOW_WORKER_DRAIN_SECONDS: "5",
    FLOW_HTTP_ALLOW_PRIVATE: "all",
    FLOW_LOG_LEVEL: "debug",
    ...environment,
  });
  const lines: Record<string, unknown>[] = [];
  const looks = new Set<() => void>();
  const stream = new PassThrough().on("data", (text: Buffer) => {
    lines.push(JSON.parse(text.toString("utf8")) as Record<string, unknown>);
    for (const look of looks) look();
  });
  const lifecycle = createLifecycle();
  const logger = createLogger(config.logLevel, stream, { role: "worker" });
  const { registered } = startWorker({ config, version: "0.0.0", logger, lifecycle });
  server.users.push(() => lifecycle.stop());
  return {
    registered,
    stop: () => lifecycle.stop(),
    log: () => lines,
    untilLog: (start) =>
      new Promise((resolve) => {
        const look = () => {
          if (!lines.some(({ msg }) => String(msg).startsWith(start))) return;
          looks.delete(look);
          resolve();
        };
        looks.add(look);
        look();
      }),
  };
}
