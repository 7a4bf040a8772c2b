import type { Config } from "../platform/config.ts";
import { createLifecycle } from "../platform/lifecycle.ts";
import type { Logger } from "../platform/logger.ts";
import { FlowError } from "../schema/errors.ts";
import { type RunningServer, startServer } from "./server.ts";

/** What a process can be. */
export const ROLES = ["server", "worker", "all", "gateway", "doctor"] as const;
export type RoleName = (typeof ROLES)[number];

/** What {@link serve} needs. */
export interface ServeDeps {
  role: RoleName;
  config: Config;
  /** Instead of `FLOW_HOST` and `FLOW_SERVER_PORT`. */
  host?: string;
  port?: number;
  folder: string;
  version: string;
  logger: Logger;
  /** Aborted when the process is to stop. */
  signal: AbortSignal;
  /** Told once everything answers. */
  onReady(server: RunningServer): void;
}

/**
 * Runs one role until it is told to stop, and returns when all of it has stopped, in the reverse order of starting: so it
 * does when starting fails half-way, or when it is told to stop while it starts. Throws `FlowError` USAGE for a role that
 * this version does not have, and what the role throws.
 */
export async function serve(deps: ServeDeps): Promise<void> {
  const { role, config, signal, onReady, host = config.host, port = config.serverPort, ...rest } = deps;
  if (role !== "server") throw missingRole(role);
  const lifecycle = createLifecycle();
  try {
    const server = await startServer({ ...rest, config, host, port, lifecycle });
    if (!signal.aborted) onReady(server);
    await aborted(signal);
    deps.logger.info({}, "stopping");
  } finally {
    await lifecycle.stop();
  }
}

function missingRole(role: RoleName): FlowError {
  const first = "This version serves the catalog alone, as --role=server";
  return new FlowError("USAGE", `The role '${role}' comes with a later part of flow. ${first}, which is the default`);
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
