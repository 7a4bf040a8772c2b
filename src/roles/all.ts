import { createHash } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { type Config, isGiven, secretVariables } from "../platform/config/config.ts";
import { createSecret } from "../platform/crypto/secret.ts";
import { newToken } from "../platform/crypto/token.ts";
import { isLoopback } from "../platform/http/loopback.ts";
import { unshareable } from "../tools/sandbox/shared-folder.ts";
import type { RunningServer, ServerDeps } from "./server/server.ts";
import { startServer } from "./server/server.ts";
import { startWorkerProcess } from "./worker/worker-process.ts";
import { hiddenFromTasks } from "./worker/worker-tools.ts";

/** What the role `all` needs. */
export interface AllDeps extends ServerDeps {
  /** The file that this program was started with. */
  entry: string;
}

/** How much longer than draining a worker may take to end. */
const STOP_EXTRA_MS = 12_000;

/** The server of a process that has every role, and where its gateway is, if it has one. */
export interface RunningAll extends RunningServer {
  gatewayUrl?: string;
}

/**
 * The role `all`: a server in this process, and beside it a process with a worker, so that no tool can keep the server from
 * answering; and a gateway, where there is something that it is set up for. Resolves when all of them do their work, or when
 * the signal aborts. Stopped in the reverse order: the worker drains while the server still takes its reports.
 */
export async function startAll(deps: AllDeps): Promise<RunningAll> {
  const { lifecycle, logger, signal } = deps;
  const config = withWorkerToken(deps.config);
  const home = resolve(deps.folder, config.home);
  // The embedded database makes it with what its user needs.
  if (config.databaseUrl !== undefined) await mkdir(home, { recursive: true, mode: 0o700 }).catch(() => undefined);
  const socket = (port: number) => join(home, `server-${port}.sock`);
  const server = await startServer({ ...deps, config, socket });
  if (signal.aborted) return server;
  const stopMs = config.workerDrainMs + STOP_EXTRA_MS;
  const { entry, folder } = deps;
  const environment = workerEnvironment(config, server, folder);
  const name = environment["FLOW_WORKER_NAME"];
  // A process that was killed keeps its name from the next one while it may still live; this one is gone for sure.
  const beforeStart = async () => (name === undefined ? undefined : await server.signOffWorker(name));
  const worker = startWorkerProcess({ entry, folder, logger, stopMs, environment, beforeStart });
  lifecycle.add("the worker", () => worker.stop(), stopMs + 1_000);
  const aborted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  await Promise.race([worker.ready, aborted]);
  if (signal.aborted || !isGatewayWanted(config)) return server;
  const { startGateway } = await import("./gateway/gateway.ts");
  const { url } = await startGateway({ ...deps, config, port: config.gatewayPort, serverUrl: reachable(server.url) });
  return { ...server, gatewayUrl: url };
}

/** The worker is no operator, also where no token was set for it: it gets one that lasts as long as this process. */
export function withWorkerToken(config: Config): Config {
  if (config.serverToken === undefined || config.workerToken !== undefined) return config;
  return { ...config, workerToken: createSecret(newToken()) };
}

/** Without providers logins are impossible: it would only take a port. */
export function isGatewayWanted(config: Config): boolean {
  return config.idpDomains.length > 0 || config.idpProviders.size > 0 || config.authBypass;
}

/** What only a server needs: a worker runs tools, which are to find as little as possible. */
const SERVER_ONLY =
  /^(FLOW_DATABASE_.+|BROKER_URL(_FILE)?|FLOW_ENCRYPTION_KEYS(_FILE)?|FLOW_CREDENTIALS_FILE|FLOW_CREDENTIAL_.+|FLOW_DOCTOR_TOKEN(_FILE)?|FLOW_S3_.+|FLOW_CLOUD_BUCKET.*)$/;

/** The worker's environment: this process's own, with the server's address and the defaults of the embedded service. */
export function workerEnvironment(
  config: Config,
  { url: serverUrl, socket }: Pick<RunningServer, "url" | "socket">,
  folder: string,
): NodeJS.ProcessEnv {
  const environment: NodeJS.ProcessEnv = { ...config.environment, FLOW_SERVER_URL: reachable(serverUrl) };
  if (socket === undefined) delete environment["FLOW_SERVER_SOCKET"];
  else environment["FLOW_SERVER_SOCKET"] = socket;
  for (const name of Object.keys(environment)) if (SERVER_ONLY.test(name)) delete environment[name];
  // Read already: their values are here.
  for (const name of secretVariables(environment)) delete environment[`${name}_FILE`];
  // One name for all its lives: a worker that is started again has its commands back as soon as it is registered.
  if (!isGiven(config, "workerName")) environment["FLOW_WORKER_NAME"] = workerName(config, folder);
  if (config.workerToken !== undefined) {
    delete environment["FLOW_SERVER_TOKEN"];
    delete environment["FLOW_SERVER_TOKEN_FILE"];
    environment["FLOW_WORKER_TOKEN"] = config.workerToken.reveal();
  }
  shareFolder(environment, config, serverUrl, folder);
  if (config.databaseUrl !== undefined) return environment;
  // With an embedded database the service belongs to one person: tools may do what that person may do.
  if (!isGiven(config, "workerTools")) environment["FLOW_WORKER_TOOLS"] = "all";
  if (!isGiven(config, "httpAllowPrivate")) environment["FLOW_HTTP_ALLOW_PRIVATE"] = "all";
  if (!isGiven(config, "duckdbFiles")) environment["FLOW_DUCKDB_FILES"] = "all";
  return environment;
}

/**
 * Lets the code of tasks work in the folder that flow was started in, where the service is for the person who started it; without
 * this service's own files, whichever folder it is: the worker does not know them all.
 */
function shareFolder(environment: NodeJS.ProcessEnv, config: Config, serverUrl: string, folder: string): void {
  const hidden = hiddenFromTasks(config, folder);
  const isShared = !isGiven(config, "taskFolder") && isOwnMachine(config, serverUrl);
  if (isShared && unshareable(folder, hidden) === undefined) environment["FLOW_TASK_FOLDER"] = folder;
  if (environment["FLOW_TASK_FOLDER"] !== undefined) environment["FLOW_TASK_HIDDEN"] = hidden.join(",");
}

/** Whether the service is for the person who started it: its own database, no logins, open on this machine and nowhere else. */
function isOwnMachine(config: Config, serverUrl: string): boolean {
  const { databaseUrl, serverToken, workerToken } = config;
  if (databaseUrl !== undefined || serverToken !== undefined || workerToken !== undefined) return false;
  return !isGatewayWanted(config) && isLoopback(new URL(serverUrl).hostname);
}

/**
 * With an embedded database there is one such process for its folder, and the name is that of the folder: after a crash the
 * next process gets the previous one's commands at once. Others are distinguished by host and process.
 */
function workerName(config: Config, folder: string): string {
  if (config.databaseUrl !== undefined) return `${hostname()}-${process.pid}`;
  const home = createHash("sha256").update(resolve(folder, config.home)).digest("hex");
  return `local-${home.slice(0, 8)}`;
}

/** A server that listens on every address is reached by loopback. */
function reachable(url: string): string {
  return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");
}
