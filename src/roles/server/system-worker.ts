import type { Lifecycle } from "../../platform/system/lifecycle.ts";
import { poolWork } from "../../schema/rules/pool-label.ts";
import type { Ability } from "../../services/orchestration/rounds/ready-queue.ts";
import { OWN_POOL, type WorkerPool } from "../../services/workers/pools.ts";
import type { RunningSystemWorker, SystemWorkerParts } from "./run-system-worker.ts";

/** What {@link startSystemWorker} needs. */
export interface SystemWorkerDeps extends Omit<SystemWorkerParts, "ability" | "answer" | "drainMs"> {
  /** The server's API. */
  app: { fetch(request: Request, env: { ownPool: WorkerPool }): Response | Promise<Response> };
  lifecycle: Lifecycle;
}

/** What running commands get to end when the server stops; other servers take what remains. Logins take some tenths of a second. */
const DRAIN_MS = 5_000;
/** How much longer the stopping may take: signing off, and closing connections. */
const STOP_EXTRA_MS = 10_000;

/**
 * The worker inside a server: it runs the playbooks that administer the service itself, logins above all, so that they run beside no
 * author's code and wait for no worker. It takes nothing else. Until there is such a command it is not even loaded.
 */
export function startSystemWorker({ lifecycle, app, ...deps }: SystemWorkerDeps): void {
  const { service, logger } = deps;
  if (!service.pools.hasOwn) return;
  const stopping = new AbortController();
  const ability: Ability = { kinds: undefined, labels: {}, ...poolWork(OWN_POOL, service.pools) };
  const start = async (): Promise<RunningSystemWorker | undefined> => {
    await service.orchestrator.untilReady(ability, stopping.signal);
    if (stopping.signal.aborted) return undefined;
    const { runSystemWorker } = await import("./run-system-worker.ts");
    const answer = (request: Request) => app.fetch(request, { ownPool: OWN_POOL });
    return runSystemWorker({ ...deps, ability, answer, drainMs: DRAIN_MS });
  };
  const running = start().catch((error: unknown) => {
    logger.error(
      { err: error },
      "the worker for system playbooks could not be started: logins wait for another server",
    );
    return undefined;
  });
  const stop = async () => {
    stopping.abort();
    await (await running)?.stop();
  };
  lifecycle.add("the worker for system playbooks", stop, DRAIN_MS + STOP_EXTRA_MS);
}
