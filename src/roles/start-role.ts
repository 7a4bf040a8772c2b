import type { Config } from "../platform/config/config.ts";
import { createLifecycle, type Lifecycle } from "../platform/system/lifecycle.ts";
import type { Logger } from "../platform/telemetry/logger.ts";
import { FlowError } from "../schema/words/errors.ts";
import type { RunningGateway } from "./gateway/gateway.ts";
import type { RunningServer } from "./server/server.ts";
import { openParentChannel } from "./worker/parent-channel.ts";

/** What a process can be. */
export const ROLES = ["server", "worker", "all", "gateway", "doctor"] as const;
/** One of {@link ROLES}. */
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
  /** The file that this program was started with. */
  entry: string;
  logger: Logger;
  /** Aborted when the process is to stop. */
  signal: AbortSignal;
  /** Called once everything is running. */
  onReady(what: Ready): void;
}

/** What does its work: a server, alone or with others beside it; a worker; a gateway; or the doctor. */
export type Ready =
  | ({ what: "server" } & RunningServer & { gatewayUrl?: string })
  | { what: "worker"; name: string; serverUrl: string }
  | ({ what: "gateway" } & RunningGateway)
  | { what: "doctor"; url: string };

/**
 * Runs one role until it is stopped, and returns when all its parts have stopped, in the reverse order of starting; also if
 * starting fails half-way or is interrupted. Throws what the role throws.
 */
export async function serve(deps: ServeDeps): Promise<void> {
  const { role } = deps;
  const parent = role === "worker" ? openParentChannel() : undefined;
  const signal = parent === undefined ? deps.signal : AbortSignal.any([deps.signal, parent.signal]);
  const lifecycle = createLifecycle();
  try {
    const ready = await start(role, { ...deps, signal }, lifecycle);
    if (!signal.aborted) {
      parent?.ready();
      deps.onReady(ready);
    }
    await aborted(signal);
    deps.logger.info({}, "stopping");
  } catch (error) {
    // It was stopped while it waited for something: that is no failure.
    if (!signal.aborted || !(error instanceof FlowError) || error.code !== "CANCELLED") throw error;
  } finally {
    await lifecycle.stop();
    parent?.close();
  }
}

/* A role's code is loaded when it is the one: a worker needs no database driver, a server no tools. */
async function start(role: RoleName, deps: ServeDeps, lifecycle: Lifecycle): Promise<Ready> {
  const { config, host = config.host, port = config.serverPort } = deps;
  const parts = { ...deps, host, port, lifecycle };
  if (role === "server" || role === "all" || role === "gateway") {
    const { checkStart } = await import("./check-start.ts");
    await checkStart({ role, config, host, port: role === "gateway" ? (deps.port ?? config.gatewayPort) : port });
  }
  if (role === "doctor") {
    const { startDoctor } = await import("./doctor/doctor.ts");
    return { what: "doctor", ...(await startDoctor({ ...parts, port: deps.port ?? config.doctorPort })) };
  }
  if (role === "gateway") {
    const { startGateway } = await import("./gateway/gateway.ts");
    return { what: "gateway", ...(await startGateway({ ...parts, port: deps.port ?? config.gatewayPort })) };
  }
  if (role === "server") return { what: "server", ...(await (await import("./server/server.ts")).startServer(parts)) };
  if (role === "all") return { what: "server", ...(await (await import("./all.ts")).startAll(parts)) };
  const { registered, name, serverUrl } = (await import("./worker/worker.ts")).startWorker(parts);
  await Promise.race([registered, aborted(deps.signal)]);
  return { what: "worker", name, serverUrl };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
