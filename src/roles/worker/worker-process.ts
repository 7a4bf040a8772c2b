import { type ChildProcess, fork } from "node:child_process";
import type { Logger } from "../../platform/telemetry/logger.ts";
import { FlowError } from "../../schema/words/errors.ts";
import { READY, splitSecrets } from "./parent-channel.ts";

/** What a {@link WorkerProcess} is started with. */
export interface WorkerProcessParts {
  /** The file that this program was started with. */
  entry: string;
  environment: Readonly<NodeJS.ProcessEnv>;
  folder: string;
  /** How long the worker may take to stop. */
  stopMs: number;
  logger: Logger;
  /** Called before each start: no earlier process of this worker runs any more. */
  beforeStart(): Promise<void>;
}

/** A worker in a separate process, which is restarted whenever it dies. */
export interface WorkerProcess {
  /**
   * Resolves when the worker does its work for the first time. Rejects with `FlowError` INVALID_SETTING when it ends because it
   * cannot use its settings: started again, it would end again.
   */
  ready: Promise<void>;
  /** Asks the worker to drain, and resolves when it has ended; after `stopMs` it is killed. */
  stop(): Promise<void>;
}

/** Delays before a worker that died is started again: doubling from 0.5 s to 30 s. */
const FIRST_MS = 500;
const LONGEST_MS = 30_000;
/** A worker that has lived this long did not die at its start. */
const STABLE_MS = 60_000;
/** Exit code of a program whose settings cannot be used. */
const UNUSABLE_SETTINGS = 2;

/**
 * Starts it. The channel between the two processes is its lifeline: the worker drains and ends when it closes, also because
 * this process was killed. When this process leaves without stopping it, it is killed.
 */
export function startWorkerProcess(parts: WorkerProcessParts): WorkerProcess {
  const { logger } = parts;
  let child: ChildProcess | undefined;
  let restart: NodeJS.Timeout | undefined;
  let deaths = 0;
  let isStopping = false;
  let isReady = () => {};
  let isUnusable = (_error: FlowError) => {};
  let ended = () => {};
  const ready = new Promise<void>((resolve, reject) => {
    isReady = resolve;
    isUnusable = reject;
  });
  // Its parent may stop it before it waits for this.
  ready.catch(() => undefined);

  const start = async () => {
    await parts
      .beforeStart()
      .catch((error: unknown) => logger.warn({ err: error }, "the last worker was not signed off"));
    if (isStopping) return;
    const startedAt = performance.now();
    const worker = open(parts);
    child = worker;
    worker.on("message", (message) => {
      if (message === READY) isReady();
    });
    const died = (why: string) => {
      if (child !== worker) return;
      child = undefined;
      ended();
      if (isStopping) return;
      deaths = performance.now() - startedAt > STABLE_MS ? 1 : deaths + 1;
      const delayMs = Math.min(LONGEST_MS, FIRST_MS * 2 ** (deaths - 1));
      const about = { pid_of_worker: worker.pid, next_try_ms: delayMs };
      logger.error(about, `the worker died (${why}) and is started again`);
      restart = setTimeout(() => void start(), delayMs);
    };
    worker.on("exit", (code, signal) => {
      if (code === UNUSABLE_SETTINGS && !isStopping) {
        isStopping = true;
        isUnusable(new FlowError("INVALID_SETTING", "The worker cannot use its settings; it said above which one"));
      }
      died(signal ?? `exit code ${code}`);
    });
    worker.on("error", (error) => died(error.message));
  };
  const kill = () => void child?.kill("SIGKILL");
  process.once("exit", kill);
  void start();

  const stop = async () => {
    isStopping = true;
    clearTimeout(restart);
    if (child !== undefined)
      await drained(child, parts, (call) => {
        ended = call;
      });
    process.off("exit", kill);
  };
  let stopping: Promise<void> | undefined;
  return {
    ready,
    stop() {
      stopping ??= stop();
      return stopping;
    },
  };
}

function open({ entry, environment, folder }: WorkerProcessParts): ChildProcess {
  const { env, input } = splitSecrets(environment);
  const child = fork(entry, ["serve", "--role", "worker"], {
    cwd: folder,
    env,
    // Its log goes where this one's goes. What it says to people is said by this process.
    stdio: ["pipe", "ignore", "inherit", "ipc"],
  });
  // One that ends before it has read them is reported by `exit`.
  child.stdin?.on("error", () => undefined);
  child.stdin?.end(input);
  return child;
}

/**
 * Asks a worker to drain and waits until it has ended; after `stopMs` it is killed. `onEnd` takes the function to call when it
 * has ended.
 */
function drained(
  running: ChildProcess,
  { stopMs, logger }: WorkerProcessParts,
  onEnd: (ended: () => void) => void,
): Promise<void> {
  return new Promise((resolve) => {
    const limit = setTimeout(() => {
      logger.error({ pid_of_worker: running.pid }, "the worker did not end in time and is killed");
      running.kill("SIGKILL");
    }, stopMs);
    onEnd(() => {
      clearTimeout(limit);
      resolve();
    });
    // Not a signal: a terminal has sent one to both processes, and a second one means "at once".
    if (running.connected) running.disconnect();
    else running.kill("SIGTERM");
  });
}
