import { once } from "node:events";
import type { TestContext } from "node:test";
import { type CliEnd, startFlow } from "./cli-process.ts";

/** A process of the service: a server or a worker, as it runs in production. */
export interface ServiceProcess {
  readonly pid: number;
  /** Everything that it has logged so far. */
  log(): string;
  /** Resolves when its log holds the text; rejects when it ends without. */
  untilLog(text: string): Promise<void>;
  signal(signal: NodeJS.Signals): void;
  /** Sends the signal and waits until the process has ended. */
  end(signal: "SIGKILL" | "SIGTERM"): Promise<CliEnd>;
  isRunning(): boolean;
}

/** A server that answers. */
export interface ServerProcess extends ServiceProcess {
  readonly url: string;
  readonly port: number;
}

/** What a process belongs to, a test or a file: it is killed after it, and tells it of an end that was not asked for. */
export type ProcessOwner = Pick<TestContext, "after" | "diagnostic">;

/** How a {@link ServiceProcess} is started. */
export interface ServiceStart {
  /** Its working folder. */
  folder: string;
  environment: Readonly<NodeJS.ProcessEnv>;
}

/** A server on this port (0: a free one), once it is ready; `process` while it starts. It is killed after the test, if it still runs. */
export function startServerProcess(
  context: ProcessOwner,
  { folder, environment }: ServiceStart,
  port = 0,
  role: "server" | "all" = "server",
): Promise<ServerProcess> & { process: ServiceProcess } {
  const { child, said } = launch(context, folder, environment, ["--role", role, "--port", String(port)]);
  const started = said(/ready at (http:\/\/\S+),/).then(([, url = ""]) => {
    return { ...child, url, port: Number(new URL(url).port) };
  });
  return Object.assign(started, { process: child });
}

/** A worker, once the server knows it. It is killed after the test, if it still runs. */
export async function startWorkerProcess(
  context: ProcessOwner,
  { folder, environment }: ServiceStart,
): Promise<ServiceProcess> {
  const { child, said } = launch(context, folder, environment, ["--role", "worker"]);
  await said(/is ready, server/);
  return child;
}

function launch(
  context: ProcessOwner,
  folder: string,
  environment: Readonly<NodeJS.ProcessEnv>,
  args: readonly string[],
) {
  const { process: started, ended, untilStderr } = startFlow(folder, ["serve", ...args], environment);
  let log = "";
  let stdout = "";
  started.stderr.on("data", (text: string) => {
    log += text;
  });
  let isAsked = false;
  // Its last output, if it was not meant to end: the test sees no more than that nothing answers.
  started.on("exit", (code, signal) => {
    if (!isAsked) context.diagnostic(`process ${started.pid} ended (${signal ?? code}):\n${log.slice(-4_000)}`);
  });
  const isRunning = () => started.exitCode === null && started.signalCode === null;
  const child: ServiceProcess = {
    pid: started.pid ?? 0,
    log: () => log,
    untilLog: untilStderr,
    signal: (signal) => void started.kill(signal),
    end(signal) {
      isAsked = true;
      started.kill(signal);
      return ended;
    },
    isRunning,
  };
  context.after(async () => {
    if (!isRunning()) return;
    isAsked = true;
    const gone = once(started, "exit");
    // Also one that is stopped ends by this.
    started.kill("SIGKILL");
    await gone;
  });
  const said = (pattern: RegExp) =>
    new Promise<RegExpExecArray>((resolve, reject) => {
      started.stdout.on("data", (text: string) => {
        stdout += text;
        const found = pattern.exec(stdout);
        if (found !== null) resolve(found);
      });
      ended.then(({ stderr }) => reject(new Error(`flow serve ended before it was ready:\n${stderr}`)), reject);
    });
  return { child, said };
}
